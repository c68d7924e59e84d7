// What the tests of other programs' files share: small files of them, damaged in every way.
#pragma once

#include "store/scratch.h"

#include <cstring>
#include <functional>
#include <random>
#include <string>

namespace noether::formats {

/// A safetensors file of float32 numbers.
inline std::string safetensors(const std::string& header, const std::vector<float>& numbers = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += header;
  return bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

/// `bytes` in memory of their own size, so that a sanitizer sees a reader that goes beyond them.
inline std::vector<char> exactly(std::string_view bytes) { return {bytes.begin(), bytes.end()}; }

/// Cut at every length, `read` fails with one line that begins with the name; with bytes turned at random it fails so
/// or does not fail.
inline void damage_in_every_way(const std::string& whole, const std::function<void(std::string_view)>& read) {
  const auto one_line = [](const std::string& text) {
    return text.starts_with("x: ") && text.find('\n') == std::string::npos && text.size() < 400;
  };
  read(whole);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string text = store::message([&] {
      const std::vector<char> cut = exactly(std::string_view(whole).substr(0, size));
      read({cut.data(), cut.size()});
    });
    ASSERT_TRUE(one_line(text)) << size << ": " << text;
  }
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    std::mt19937_64 random(seed);
    std::string damaged = whole;
    // Numbers take most of the bytes; what is believed lies at both ends.
    const std::uint64_t reach = seed % 3 == 0 ? damaged.size() : std::min<std::uint64_t>(damaged.size(), 512);
    for (std::uint64_t turns = 1 + random() % 4; turns > 0; --turns) {
      const std::uint64_t at = random() % reach;
      damaged[seed % 3 == 1 ? damaged.size() - 1 - at : at] = static_cast<char>(random());
    }
    const std::string text = store::message([&] { read(damaged); });
    ASSERT_TRUE(text.empty() || one_line(text)) << "seed " << seed << ": " << text;
  }
}

} // namespace noether::formats
