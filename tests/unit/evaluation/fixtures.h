// Small models, tokenizers and token files for the tests of this room.
#pragma once

#include "architecture/checkpoint.h"
#include "base/random.h"
#include "text/token_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace noether::evaluation {

/// The 256 bytes, words without merges ("<256>"), and end-of-text as the last id.
inline text::Tokenizer tokenizer(std::uint32_t vocab_size, bool end_of_text = true) {
  text::Tokenizer out;
  for (std::uint32_t id = 0; id < vocab_size; ++id)
    out.tokens.push_back(id < 256 ? std::string(1, static_cast<char>(id)) : fmt::format("<{}>", id));
  if (end_of_text) {
    out.tokens.back() = "<|endoftext|>";
    out.special = {{out.tokens.back(), vocab_size - 1}};
    out.end_of_text = vocab_size - 1;
  }
  return out;
}

/// The 256 bytes, the tokens that these merges make of them, and end-of-text as the last id. A merge names its two
/// spellings.
inline text::Tokenizer merging_tokenizer(const std::vector<std::pair<std::string, std::string>>& merges) {
  const auto pairs = static_cast<std::uint32_t>(merges.size());
  text::Tokenizer out = tokenizer(256 + pairs + 1);
  const auto id_of = [&](const std::string& spelling) {
    return static_cast<std::uint32_t>(std::find(out.tokens.begin(), out.tokens.end(), spelling) - out.tokens.begin());
  };
  for (std::uint32_t i = 0; i < pairs; ++i) {
    out.tokens[256 + i] = merges[i].first + merges[i].second;
    out.merges.emplace_back(id_of(merges[i].first), id_of(merges[i].second));
  }
  return out;
}

/// A file that is gone with the test.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("noether-{}-{}", getpid(), name)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

/// A token file of these documents, opened. Its file is removed at once: it stays mapped.
inline text::TokenFile token_file(const text::Tokenizer& tokenizer,
                                  const std::vector<std::vector<std::uint32_t>>& documents) {
  const TemporaryFile file("tokens.h5");
  text::TokenSink sink(tokenizer);
  for (const auto& document : documents) sink.add_document(document);
  store::OutputStream out(file.path());
  out.write(sink.finish(), {});
  out.close();
  return text::TokenFile(store::open_one(file.path(), store::kTokensFile));
}

/// `count` documents of random lengths up to 60, without end-of-text.
inline std::vector<std::vector<std::uint32_t>> random_documents(std::uint64_t seed, std::uint64_t count,
                                                                std::uint64_t vocab_size) {
  const Random random(seed, Purpose::kSample);
  std::uint64_t draw = 0;
  std::vector<std::vector<std::uint32_t>> documents(count);
  for (auto& document : documents) {
    document.resize(1 + random.below(draw++, 60));
    for (auto& id : document) id = static_cast<std::uint32_t>(random.below(draw++, vocab_size - 1));
  }
  return documents;
}

inline architecture::Config small_config(std::int64_t vocab_size) {
  architecture::Config config;
  config.layers = 2;
  config.heads = config.kv_heads = 2;
  config.width = 16;
  config.head_width = 8;
  config.hidden = 32;
  config.context = 24;
  config.vocab_size = vocab_size;
  return config;
}

/// Parameters large enough that logits differ by several nats.
inline architecture::Checkpoint small_checkpoint(const architecture::Config& config, bool with_tokenizer = true) {
  architecture::Checkpoint checkpoint = architecture::initialise(config, 5, 1);
  for (const architecture::Parameter& parameter : checkpoint.layout)
    if (parameter.is_matrix())
      for (std::int64_t i = 0; i < parameter.count; ++i) checkpoint.parameters.data()[parameter.offset + i] *= 20;
  checkpoint.name = "small.h5";
  if (with_tokenizer) checkpoint.tokenizer = tokenizer(static_cast<std::uint32_t>(config.vocab_size));
  return checkpoint;
}

/// A model that finds each token as likely wherever it stands: softmax of these logits, 0 for the ids beyond them.
inline architecture::Checkpoint unigram_checkpoint(const text::Tokenizer& tokenizer,
                                                   const std::vector<std::pair<std::uint32_t, float>>& logits) {
  architecture::Checkpoint checkpoint = architecture::initialise(small_config(tokenizer.vocab_size()), 5, 1);
  std::fill(checkpoint.parameters.span().begin(), checkpoint.parameters.span().end(), 0.0F);
  // The last norm's output is its bias then, and a logit the sum of a row of the head.
  for (const architecture::Parameter& parameter : checkpoint.layout)
    if (parameter.name == "head/norm_bias")
      std::fill_n(checkpoint.parameters.data() + parameter.offset, parameter.count, 1.0F);
  for (const auto& [id, logit] : logits)
    checkpoint.parameters.data()[std::int64_t{id} * checkpoint.config.width] = logit;
  checkpoint.name = "unigram.h5";
  checkpoint.tokenizer = tokenizer;
  return checkpoint;
}

} // namespace noether::evaluation
