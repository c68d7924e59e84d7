// A small model and small token files, for the tests of this room.
#pragma once

#include "architecture/checkpoint.h"
#include "base/error.h"
#include "base/random.h"
#include "text/token_file.h"
#include "training/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace noether::training {

/// A folder of its own for each test, gone afterwards.
class Folder {
public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("noether-training-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

/// Every byte is a token, and nothing is merged.
inline text::Tokenizer bytes_tokenizer(std::uint32_t count = 256) {
  text::Tokenizer tokenizer;
  for (std::uint32_t i = 0; i < count; ++i) tokenizer.tokens.emplace_back(1, static_cast<char>(i));
  return tokenizer;
}

/// `size` tokens of one document; token i is i mod 256, or drawn from 0 .. below - 1.
inline text::TokenFile token_file(const std::string& path, std::uint64_t size, std::uint32_t below = 0) {
  const text::Tokenizer tokenizer = bytes_tokenizer();
  std::vector<std::uint32_t> ids(size);
  const Random random(size, Purpose::kSample);
  for (std::uint64_t i = 0; i < size; ++i)
    ids[i] = static_cast<std::uint32_t>(below > 0 ? random.below(i, below) : i % 256);
  text::TokenSink sink(tokenizer);
  sink.add_document(ids);
  store::OutputStream output(path);
  output.write(sink.finish(), {});
  output.close();
  return text::TokenFile(store::open_one(path, store::kTokensFile));
}

inline architecture::Config small_config() {
  architecture::Config config;
  config.layers = 2;
  config.heads = config.kv_heads = 2;
  config.width = 16;
  config.head_width = 8;
  config.hidden = 32;
  config.context = 12;
  config.vocab_size = 256;
  config.symmetry_break = architecture::Break::qv;
  return config;
}

/// Settings from what is given, as the program would make them.
inline Json settings_json(const Json& given, const Json& stored = {}, std::uint64_t steps = 100) {
  return resolve_settings(given, stored, {.steps = steps, .model_context = 12, .digests = {"d"}});
}

/// What f() says when it fails.
template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

} // namespace noether::training
