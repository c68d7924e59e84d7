#include "base/random.h"

#include <cmath>
#include <numbers>

namespace noether {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9; // Weyl sequences: the golden ratio and sqrt(3) - 1
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t step, std::uint32_t layer) : step_(step) {
  // Purpose and layer are folded into the key through the generator itself, so that all 128 bits of the counter stay
  // free for step and index.
  const auto mixed = philox({static_cast<std::uint32_t>(purpose), layer, 0, 0},
                            {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  key_ = {mixed[0], mixed[1]};
}

std::uint64_t Random::bits(std::uint64_t index) const {
  const std::uint64_t block = index / 2;
  const auto r = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                         static_cast<std::uint32_t>(step_), static_cast<std::uint32_t>(step_ >> 32)},
                        key_);
  return index % 2 == 0 ? (std::uint64_t{r[1]} << 32 | r[0]) : (std::uint64_t{r[3]} << 32 | r[2]);
}

double Random::uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

std::uint64_t Random::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits(index)} * bound) >> 64);
}

std::array<double, 2> Random::normal_pair(std::uint64_t pair) const {
  const double radius = std::sqrt(-2 * std::log1p(-uniform(2 * pair)));
  const double angle = 2 * std::numbers::pi * uniform(2 * pair + 1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double Random::normal(std::uint64_t index) const { return normal_pair(index / 2)[index % 2]; }

void Random::fill_normal(float* out, std::uint64_t begin, std::uint64_t count, double mean, double deviation) const {
  for (std::uint64_t i = 0; i < count;) {
    const std::array<double, 2> both = normal_pair((begin + i) / 2);
    for (std::uint64_t k = (begin + i) % 2; k < 2 && i < count; ++k, ++i)
      out[i] = static_cast<float>(mean + deviation * both[k]);
  }
}

} // namespace noether
