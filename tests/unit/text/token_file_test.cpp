#include "text/token_file.h"

#include "store/scratch.h"
#include "text/spill.h"

#include <gtest/gtest.h>

#include <cstring>

namespace noether::text {
namespace {

using store::message;
using store::Scratch;

/// Bytes, made-up tokens and end-of-text as the last id.
Tokenizer of_size(std::uint32_t vocab_size) {
  Tokenizer tokenizer;
  for (std::uint32_t id = 0; id + 1 < vocab_size; ++id)
    tokenizer.tokens.push_back(id < 256 ? std::string(1, static_cast<char>(id)) : fmt::format("<{}>", id));
  tokenizer.tokens.emplace_back("<|endoftext|>");
  tokenizer.special = {{"<|endoftext|>", vocab_size - 1}};
  tokenizer.end_of_text = vocab_size - 1;
  return tokenizer;
}

void save(const std::string& path, store::FileWriter file) {
  store::OutputStream output(path);
  output.write(std::move(file), {});
  output.close();
}

TokenFile open(const std::string& path) { return TokenFile(store::open_one(path, store::kTokensFile)); }

std::vector<std::int64_t> all(const TokenFile& file) {
  std::vector<std::int64_t> ids(file.size());
  file.read(0, file.size(), ids.data());
  return ids;
}

TEST(TokenFile, RoundTripAtBothWidths) {
  for (const std::uint32_t size : {300U, 65536U, 65537U}) {
    const Scratch scratch;
    const Tokenizer tokenizer = of_size(size);
    const std::uint32_t end = size - 1;
    TokenSink sink(tokenizer);
    sink.add_document(std::vector<std::uint32_t>{1, 2, end - 1});
    sink.add_document({});
    sink.append(std::vector<std::uint32_t>{3});
    sink.append(std::vector<std::uint32_t>{4});
    sink.end_document();
    EXPECT_EQ(sink.documents(), 3U);
    save(scratch / "t.h5", sink.finish());

    const TokenFile file = open(scratch / "t.h5");
    EXPECT_EQ(file.file().info("/tokens").type, size <= 65536 ? store::Type::u16 : store::Type::u32);
    EXPECT_EQ(all(file), (std::vector<std::int64_t>{1, 2, end - 1, end, end, 3, 4}));
    EXPECT_EQ(std::vector<std::uint64_t>(file.documents().begin(), file.documents().end()),
              (std::vector<std::uint64_t>{0, 4, 5, 7}));
    EXPECT_EQ(file.text_bytes(), 4 + tokenizer.tokens[end - 1].size()); // end-of-text stands for no text
    EXPECT_EQ(file.tokenizer_digest(), digest(tokenizer));
    EXPECT_FALSE(file.final_end_of_text());
    std::int64_t one = 0;
    file.read(5, 1, &one);
    EXPECT_EQ(one, 3);
    EXPECT_EQ(message([&] { file.read(5, 3, &one); }), file.name() + ": tokens 5 to 8 are asked for, of 7");
    EXPECT_THROW(file.read(~std::uint64_t{0}, 2, &one), Error);
  }
}

TEST(TokenFile, ATextThatEndsWithASeparatorAndNoTextAtAll) {
  const Scratch scratch;
  TokenSink ended(of_size(300));
  ended.add_document(std::vector<std::uint32_t>{7});
  ended.end_text();
  save(scratch / "ended.h5", ended.finish());
  const TokenFile file = open(scratch / "ended.h5");
  EXPECT_TRUE(file.final_end_of_text());
  EXPECT_EQ(all(file), (std::vector<std::int64_t>{7, 299}));
  EXPECT_EQ(file.documents().size(), 2U);

  save(scratch / "none.h5", TokenSink(of_size(300)).finish());
  EXPECT_EQ(open(scratch / "none.h5").size(), 0U);
}

TEST(TokenFile, WithoutEndOfTextDocumentsFollowEachOther) {
  const Scratch scratch;
  Tokenizer tokenizer = of_size(300);
  tokenizer.end_of_text.reset();
  TokenSink sink(tokenizer);
  sink.add_document(std::vector<std::uint32_t>{1});
  sink.add_document(std::vector<std::uint32_t>{2});
  sink.end_text();
  save(scratch / "t.h5", sink.finish());
  const TokenFile file = open(scratch / "t.h5");
  EXPECT_EQ(all(file), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(file.final_end_of_text());
}

TEST(TokenFile, DamageIsNamed) {
  const Scratch scratch;
  const auto with = [&](const std::vector<std::uint16_t>& tokens, const std::vector<std::uint64_t>& documents) {
    store::FileWriter file(store::kTokensFile);
    put(file, of_size(300));
    file.array("/tokens", tokens);
    file.attribute("/tokens", "text_bytes", std::int64_t{1});
    file.attribute("/tokens", "final_end_of_text", std::int64_t{0});
    file.array("/documents", documents);
    save(scratch / "d.h5", std::move(file));
    return message([&] { all(open(scratch / "d.h5")); });
  };
  const std::string name = scratch / "d.h5";
  EXPECT_EQ(with({1, 2}, {0, 2}), "");
  EXPECT_EQ(with({1, 300}, {0, 2}), name + ": token 1 is 300, beyond the vocabulary of 300");
  EXPECT_EQ(with({1, 2}, {0, 3}), name + ": /documents does not divide its 2 tokens");
  EXPECT_EQ(with({1, 2}, {0, 2, 1, 2}), name + ": /documents does not divide its 2 tokens");
  EXPECT_EQ(with({1, 2}, {}), name + ": /documents does not divide its 2 tokens");

  store::FileWriter bare(store::kTokensFile);
  bare.array("/table/loss", std::vector<float>{1});
  save(scratch / "bare.h5", std::move(bare));
  EXPECT_EQ(message([&] { open(scratch / "bare.h5"); }),
            scratch / "bare.h5" + ": it carries no tokenizer (no dataset /tokenizer/bytes)");
}

TEST(Spill, MemoryAndFileGiveTheSameBytes) {
  for (const std::size_t limit : {1U, 10U, 1000U, 1U << 20}) {
    Spill spill(limit);
    std::string expected;
    for (int i = 0; i < 500; ++i) {
      const std::string bytes = fmt::format("{},", i);
      spill.append(bytes.data(), bytes.size());
      expected += bytes;
    }
    EXPECT_EQ(spill.spilled(), limit <= 1000);
    ASSERT_EQ(spill.size(), expected.size());
    EXPECT_EQ(std::memcmp(spill.data(), expected.data(), expected.size()), 0);
  }
}

TEST(Spill, AFolderThatCannotBeWrittenIsNamed) {
  const char* const kept = std::getenv("TMPDIR");
  const std::string before = kept == nullptr ? "" : kept;
  ::setenv("TMPDIR", "/proc/no such folder", 1);
  const std::string what = message([] { Spill(1).append("xy", 2); });
  kept == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(what, "TMPDIR (/proc/no such folder): no such file or directory");
}

} // namespace
} // namespace noether::text
