#include "formats/tokenizer_files.h"

#include "store/scratch.h"
#include "text/bpe.h"
#include "text/reference.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace noether::formats {
namespace {

using nlohmann::json;
using store::message;
using store::Scratch;
using store::spill;

const std::string kTokenizers = NOETHER_SHARED "/data/tokenizers/";

bool no_shared() { return !std::filesystem::exists(kTokenizers); }

// tiktoken's ids for 412 strings, by each of the forms that GPT-2's ranks are published in.
TEST(LoadTokenizer, Gpt2InAllForms) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  std::string digest;
  for (const std::string name : {"gpt2.tiktoken", "gpt2-encoder.json", "gpt2-vocab.bpe", "gpt2-tokenizer.json"}) {
    SCOPED_TRACE(name);
    const text::Tokenizer tokenizer = load_tokenizer(kTokenizers + name);
    ASSERT_EQ(tokenizer.vocab_size(), 50257U);
    EXPECT_EQ(tokenizer.end_of_text, 50256U);
    if (digest.empty()) digest = text::digest(tokenizer);
    EXPECT_EQ(text::digest(tokenizer), digest);
    text::Encoder encoder(tokenizer);
    std::ifstream file(kTokenizers + "gpt2-encodings.jsonl");
    int lines = 0;
    for (std::string line; std::getline(file, line); ++lines) {
      const json expected = json::parse(line);
      const std::string text = text::from_base64(expected["text_b64"].get<std::string>());
      const auto ids = encoder.encode(text, expected.value("special", false));
      ASSERT_EQ(ids, expected["ids"].get<std::vector<std::uint32_t>>()) << line;
      ASSERT_EQ(text::decode(tokenizer, ids.data(), ids.size()), text);
    }
    EXPECT_EQ(lines, 412);
    std::ifstream invalid(kTokenizers + "gpt2-encodings-invalid-utf8.jsonl");
    for (std::string line; std::getline(invalid, line);) {
      const std::string text = text::from_base64(json::parse(line)["text_b64"].get<std::string>());
      const auto ids = encoder.encode(text);
      EXPECT_EQ(text::decode(tokenizer, ids.data(), ids.size()), text) << line;
    }
  }
}

TEST(LoadTokenizer, ForeignSortsAreRefusedByName) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  EXPECT_EQ(message([] { load_tokenizer(kTokenizers + "neox-20b-tokenizer.json"); }),
            kTokenizers + "neox-20b-tokenizer.json: expected no normalizer, found \"NFC\": it changes text, and "
                          "decoding could not give it back");
  for (const std::string name : {"mistral-v1-tokenizer.model", "sentencepiece-test_model.model"})
    EXPECT_EQ(message([&] { load_tokenizer(kTokenizers + name); }),
              kTokenizers + name + ": expected a byte-level BPE, found a SentencePiece model");
}

/// A byte-level tokenizer.json of 256 bytes, "ab", and an end-of-text token; made here, so no third-party vocabulary is
/// needed.
json small() {
  json vocab = json::object();
  int unseen = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int letter = seen ? byte : unseen++;
    std::string spelled;
    if (letter >= 128) spelled += static_cast<char>(0xC0 | letter >> 6);
    spelled += static_cast<char>(letter < 128 ? letter : 0x80 | (letter & 0x3F));
    vocab[spelled] = byte;
  }
  vocab["ab"] = 256;
  json file;
  file["added_tokens"] =
      json::array({{{"id", 257}, {"content", "<|endoftext|>"}, {"special", true}, {"lstrip", false}}});
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  file["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array({"a b"})}, {"unk_token", nullptr}};
  return file;
}

TEST(LoadTokenizer, TokenizerJson) {
  const Scratch scratch;
  const auto load = [&](const json& file) {
    spill(scratch / "t", file.dump());
    return load_tokenizer(scratch / "t");
  };
  const text::Tokenizer plain = load(small());
  EXPECT_EQ(plain.tokens[10], "\n");
  EXPECT_EQ(plain.tokens[256], "ab");
  EXPECT_EQ(plain.end_of_text, 257U);
  EXPECT_EQ(plain.pre_tokenizer, text::PreTokenizer::gpt2);
  EXPECT_FALSE(plain.whole_words);

  json pairs = small();
  pairs["model"]["merges"] = json::array({json::array({"a", "b"})});
  EXPECT_EQ(text::digest(load(pairs)), text::digest(plain));

  json llama = small();
  llama["model"]["ignore_merges"] = true;
  const std::string pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  llama["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_EQ(load(llama).pre_tokenizer, text::PreTokenizer::llama3);
  EXPECT_TRUE(load(llama).whole_words);

  const auto refused = [&](const std::function<void(json&)>& change) {
    json file = small();
    change(file);
    const std::string what = message([&] { load(file); });
    return what.substr(std::min(what.size(), (scratch / "t").size() + 2));
  };
  EXPECT_EQ(refused([](json& f) { f["model"]["type"] = "WordPiece"; }),
            "expected a byte-level BPE, found the model \"WordPiece\"");
  EXPECT_EQ(refused([](json& f) { f["model"]["dropout"] = 0.1; }), "expected a byte-level BPE, found dropout = 0.1");
  EXPECT_EQ(refused([](json& f) { f["pre_tokenizer"]["add_prefix_space"] = true; }),
            "expected a byte-level pre-tokenizer, gpt2's or llama3's, found \"ByteLevel\"");
  EXPECT_EQ(refused([](json& f) {
              f["pre_tokenizer"] = {{"type", "Metaspace"}};
            }),
            "expected a byte-level pre-tokenizer, gpt2's or llama3's, found \"Metaspace\"");
  EXPECT_EQ(
      refused([](json& f) { f["added_tokens"][0]["special"] = false; }),
      "added token \"<|endoftext|>\" is matched in ordinary text or takes blanks with it, which is not supported");
  EXPECT_EQ(refused([](json& f) { f["model"]["vocab"]["ab"] = 300; }), "no token has the id 256");
  EXPECT_EQ(refused([](json& f) { f["model"]["vocab"]["ab"] = 5; }), "two tokens have the id 5");
  EXPECT_EQ(refused([](json& f) { f["model"]["vocab"]["ab"] = -1; }), "token id -1 is out of range");
  EXPECT_EQ(refused([](json& f) { f["model"]["vocab"].erase("x"); }), "no token has the id 120");
  EXPECT_EQ(refused([](json& f) { f["model"]["vocab"]["x y"] = 258; }),
            "token x y is not spelled in the byte-level alphabet");
  EXPECT_EQ(refused([](json& f) { f["model"]["merges"] = {"a q"}; }),
            "merge 0 joins tokens 97 and 113 into one that is not in the vocabulary");
  EXPECT_EQ(refused([](json& f) { f["model"]["merges"] = {7}; }), "expected a merge of two tokens, found 7");
  EXPECT_EQ(refused([](json& f) { f["added_tokens"] = {3}; }), "its JSON is not put together as a tokenizer.json is");
}

TEST(LoadTokenizer, VocabAndMergesBesideEachOther) {
  const Scratch scratch;
  json vocab = small()["model"]["vocab"];
  vocab["<|endoftext|>"] = 257;
  spill(scratch / "my-vocab.json", vocab.dump());
  EXPECT_EQ(message([&] { load_tokenizer(scratch / "my-vocab.json"); }),
            scratch / "my-vocab.json" + ": one half of a tokenizer; the other one, " + (scratch / "my-merges.txt") +
                ", is not beside it");
  spill(scratch / "my-merges.txt", "#version: 0.2\r\na b\r\n");
  for (const std::string name : {"my-vocab.json", "my-merges.txt"}) {
    const text::Tokenizer tokenizer = load_tokenizer(scratch / name);
    EXPECT_EQ(tokenizer.merges.size(), 1U);
    EXPECT_EQ(tokenizer.end_of_text, 257U);
  }
  spill(scratch / "my-merges.txt", "#version: 0.2\na b c\n");
  EXPECT_EQ(message([&] { load_tokenizer(scratch / "my-vocab.json"); }),
            scratch / "my-merges.txt" + ":2: expected two tokens");
}

TEST(LoadTokenizer, OurFilesPlainAndFromStdin) {
  const Scratch scratch;
  spill(scratch / "t", small().dump());
  const text::Tokenizer tokenizer = load_tokenizer(scratch / "t");
  store::FileWriter file(store::kTokenizerFile);
  text::put(file, tokenizer);
  store::OutputStream output(scratch / "t.h5");
  output.write(std::move(file), {});
  output.close();
  EXPECT_EQ(text::digest(load_tokenizer(scratch / "t.h5")), text::digest(tokenizer));
  const auto piped = store::through_pipe(store::slurp(scratch / "t.h5"), [] { return load_tokenizer("-"); });
  EXPECT_EQ(text::digest(piped), text::digest(tokenizer));
}

TEST(LoadTokenizer, WhatIsNoTokenizer) {
  const Scratch scratch;
  const auto refused = [&](const std::string& bytes) {
    spill(scratch / "x", bytes);
    const std::string what = message([&] { load_tokenizer(scratch / "x"); });
    return what.substr(std::min(what.size(), (scratch / "x").size() + 2));
  };
  const std::string unknown =
      "no tokenizer that is known: neither HDF5, .tiktoken ranks, vocab.json with merges.txt, nor tokenizer.json";
  EXPECT_EQ(refused(""), "empty");
  EXPECT_EQ(refused("hello"), unknown);
  EXPECT_EQ(refused(std::string("PK\x03\x04\0\0\0\0", 8)), unknown);
  EXPECT_EQ(refused("{\"model\":"), "not valid JSON at byte 10");
  EXPECT_EQ(refused("{\"model\":[]}"), "expected a byte-level BPE, found the model []");
  EXPECT_EQ(refused("IQ== 0\nIg== 1\n"),
            "2 ranks; only GPT-2's 50256 say by their number how text is cut (a tokenizer.json says it itself)");
  EXPECT_EQ(refused("IQ== 0\nI!== 1\n"), ": expected base64 and a rank"); // of line 2, by the length of what was cut
  EXPECT_NE(message([&] { load_tokenizer(scratch / "none"); }).find("no such file"), std::string::npos);
}

} // namespace
} // namespace noether::formats
