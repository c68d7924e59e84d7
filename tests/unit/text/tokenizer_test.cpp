#include "text/tokenizer.h"

#include "store/scratch.h"

#include <gtest/gtest.h>

namespace noether::text {
namespace {

using store::message;
using store::Scratch;

Tokenizer small() {
  Tokenizer tokenizer;
  for (int byte = 0; byte < 256; ++byte) tokenizer.tokens.emplace_back(1, static_cast<char>(byte));
  tokenizer.tokens.insert(tokenizer.tokens.end(), {"ab", "abc", "<|endoftext|>"});
  tokenizer.merges = {{'a', 'b'}, {256, 'c'}};
  tokenizer.special = {{"<|endoftext|>", 258}};
  tokenizer.end_of_text = 258;
  return tokenizer;
}

void save(const std::string& path, store::FileWriter file) {
  store::OutputStream output(path);
  output.write(std::move(file), {});
  output.close();
}

Tokenizer load(const std::string& path) { return read_tokenizer(store::open_one(path, store::kTokenizerFile)); }

TEST(Tokenizer, RoundTrip) {
  const Scratch scratch;
  for (const bool with_special : {true, false}) {
    Tokenizer tokenizer = small();
    tokenizer.pre_tokenizer = PreTokenizer::llama3;
    tokenizer.whole_words = with_special;
    if (!with_special) {
      tokenizer.special.clear();
      tokenizer.end_of_text.reset();
      tokenizer.tokens.pop_back();
      tokenizer.merges.clear();
    }
    store::FileWriter file(store::kTokenizerFile);
    put(file, tokenizer);
    save(scratch / "t.h5", std::move(file));
    const Tokenizer read = load(scratch / "t.h5");
    EXPECT_EQ(read.tokens, tokenizer.tokens);
    EXPECT_EQ(read.merges, tokenizer.merges);
    EXPECT_EQ(read.pre_tokenizer, PreTokenizer::llama3);
    EXPECT_EQ(read.whole_words, with_special);
    EXPECT_EQ(read.end_of_text, tokenizer.end_of_text);
    EXPECT_EQ(digest(read), digest(tokenizer));
    EXPECT_EQ(read.text_bytes(255), 1U);
    if (with_special) {
      EXPECT_EQ(read.text_bytes(258), 0U);
    }
  }
}

TEST(Tokenizer, DigestSeesEverythingThatDecidesAnEncoding) {
  std::vector<Tokenizer> changed(8, small());
  changed[1].pre_tokenizer = PreTokenizer::llama3;
  changed[2].whole_words = true;
  changed[3].end_of_text.reset();
  changed[4].special.clear();
  std::swap(changed[5].merges[0], changed[5].merges[1]);
  std::swap(changed[6].tokens[0], changed[6].tokens[1]);
  changed[7].tokens[256] = "a"; // the same bytes end to end, divided elsewhere
  changed[7].tokens[257] = "babc";
  for (std::size_t i = 0; i < changed.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(digest(changed[i]), digest(changed[j])) << i << ' ' << j;
  EXPECT_EQ(digest(small()), digest(small()));
  EXPECT_EQ(digest(small()).size(), 32U);
}

TEST(Tokenizer, FaultsAreNamed) {
  const auto fault_of = [](const std::function<void(Tokenizer&)>& change) {
    Tokenizer tokenizer = small();
    change(tokenizer);
    return fault(tokenizer).value_or("");
  };
  EXPECT_EQ(fault_of([](Tokenizer&) {}), "");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.tokens[65] = "AA"; }), "no token is the byte 0x41");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.tokens[257] = "ab"; }), "token 257 has the same bytes as an earlier one");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.tokens[257] = ""; }), "token 257 has no bytes");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.merges[1].second = 'd'; }),
            "merge 1 joins tokens 256 and 100 into one that is not in the vocabulary");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.merges[1].second = 259; }),
            "merge 1 joins token 259 is beyond the vocabulary of 259");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.merges[1].second = 258; }), "merge 1 joins a special token");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.special[0].id = 259; }), "special token 259 is beyond the vocabulary of 259");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.special[0].spelling = "x"; }),
            "the spelling of special token 258 is not its own");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.end_of_text = 3; }), "the end-of-text token 3 is not a special token");
  EXPECT_EQ(fault_of([](Tokenizer& t) { t.special.push_back(t.special[0]); }),
            "special tokens are not in order of their ids");
}

TEST(Tokenizer, DamagedFilesAreRefused) {
  const Scratch scratch;
  const auto with = [&](const std::vector<std::uint64_t>& offsets, const store::Shape& merges, std::int64_t end_of_text,
                        std::string_view pre_tokenizer) {
    store::FileWriter file(store::kTokenizerFile);
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
    const std::uint32_t none[4] = {0, 0, 0, 0};
    file.array("/tokenizer/bytes", bytes);
    file.array("/tokenizer/offsets", offsets);
    file.owned_array("/tokenizer/merges", store::Type::u32, merges, none);
    file.array("/tokenizer/special", std::vector<std::uint32_t>{});
    file.attribute("/tokenizer", "type", std::string_view("bpe"));
    file.attribute("/tokenizer", "pre_tokenizer", pre_tokenizer);
    file.attribute("/tokenizer", "whole_words", std::int64_t{0});
    file.attribute("/tokenizer", "end_of_text", end_of_text);
    file.attribute("/tokenizer", "digest", std::string_view("0"));
    save(scratch / "d.h5", std::move(file));
    const std::string what = message([&] { load(scratch / "d.h5"); });
    const std::string begin = scratch / "d.h5" + ": /tokenizer: ";
    return what.starts_with(begin) ? what.substr(begin.size()) : what;
  };
  std::vector<std::uint64_t> good(257);
  for (std::size_t i = 0; i < 257; ++i) good[i] = i;
  EXPECT_TRUE(with(good, {0, 2}, -1, "gpt2").starts_with("its digest is 0, expected ")); // all else is right
  std::vector<std::uint64_t> bad = good;
  bad[5] = 300;
  EXPECT_EQ(with(bad, {0, 2}, -1, "gpt2"), "its offsets do not divide its bytes");
  EXPECT_EQ(with({}, {0, 2}, -1, "gpt2"), "its offsets do not divide its bytes");
  EXPECT_EQ(with({0, 256}, {0, 2}, -1, "gpt2"), "no token is the byte 0x00");
  EXPECT_EQ(with(good, {1, 4}, -1, "gpt2"), "expected merges of shape [n, 2]");
  EXPECT_EQ(with(good, {1, 2}, -1, "gpt2"), "merge 0 joins tokens 0 and 0 into one that is not in the vocabulary");
  EXPECT_EQ(with(good, {0, 2}, 400, "gpt2"), "the end-of-text token 400 is not a special token");
  EXPECT_EQ(with(good, {0, 2}, -7, "gpt2"), "end_of_text is -7");
  EXPECT_EQ(with(good, {0, 2}, -1, "cl100k"), "expected pre_tokenizer gpt2 or llama3, found cl100k");
}

TEST(PreTokenizerNames, BothWaysWithASuggestion) {
  EXPECT_EQ(pre_tokenizer_of("llama3"), PreTokenizer::llama3);
  EXPECT_EQ(name_of(PreTokenizer::gpt2), "gpt2");
  EXPECT_EQ(message([] { pre_tokenizer_of("llama"); }),
            "unknown pre-tokenizer llama: expected gpt2 or llama3 (did you mean llama3?)");
}

} // namespace
} // namespace noether::text
