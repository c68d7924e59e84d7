#include "text/encode_documents.h"

#include "store/scratch.h"
#include "text/bpe_train.h"
#include "text/reference.h"

#include <gtest/gtest.h>

namespace noether::text {
namespace {

std::vector<std::vector<std::uint32_t>> encoded(const std::string& path, const Tokenizer& tokenizer, bool special,
                                                int threads, std::size_t batch, std::size_t piece) {
  const Encoder encoder(tokenizer);
  DocumentOptions options;
  options.batch_bytes = batch;
  options.piece_bytes = piece;
  options.cut = !special || !encoder.blanks_in_special();
  DocumentReader reader({path}, options, tokenizer.pre_tokenizer);
  std::vector<std::vector<std::uint32_t>> documents(1);
  encode_documents(reader, encoder, special, threads, nullptr, [&](std::span<const std::uint32_t> ids, bool ends) {
    documents.back().insert(documents.back().end(), ids.begin(), ids.end());
    if (ends) documents.emplace_back();
  });
  EXPECT_TRUE(documents.back().empty());
  documents.pop_back();
  return documents;
}

// Equal to encoding each document by itself, for any number of threads and any sizes.
TEST(EncodeDocuments, ThreadsAndSizesChangeNothing) {
  const store::Scratch scratch;
  std::vector<std::string> texts;
  std::string all;
  WordCounts words;
  for (std::uint64_t number = 0; number < 40; ++number) {
    texts.push_back("x" + draw(kTricky, 41, number, 400) + "<|a b|>y");
    all += (number > 0 ? "\n<|endoftext|>\n" : "") + texts.back();
  }
  store::spill(scratch / "text", all);
  for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3}) {
    TrainOptions train;
    train.vocab_size = 400;
    train.pre_tokenizer = kind;
    train.special.emplace_back("<|a b|>");
    DocumentReader reader({scratch / "text"}, {}, kind);
    const Tokenizer tokenizer = train_bpe(count_words(reader, kind, 1, nullptr), train);
    Encoder encoder(tokenizer);
    for (const bool special : {false, true}) {
      std::vector<std::vector<std::uint32_t>> expected;
      for (const std::string& text : texts) expected.push_back(encoder.encode(text, special));
      for (const int threads : {1, 2, 5})
        for (const std::size_t batch : {64, 3000, 1 << 20})
          for (const std::size_t piece : {1, 50, 100000})
            ASSERT_EQ(encoded(scratch / "text", tokenizer, special, threads, batch, piece), expected);
    }
  }
}

} // namespace
} // namespace noether::text
