#include "training/windows.h"

#include "base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace noether::training {

Windows::Windows(const std::vector<std::uint64_t>& sizes, const std::vector<double>& weights, std::int64_t context,
                 Order order, std::uint64_t seed)
    : sizes_(sizes), context_(context), order_(order), seed_(seed) {
  const auto windows_of = [&](std::size_t file) {
    const auto length = static_cast<std::uint64_t>(context);
    return order == Order::random ? sizes[file] - length : (sizes[file] - 1 + length - 1) / length;
  };
  pools_.resize(weights.empty() ? 1 : sizes.size());
  double left = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t file = 0; file < sizes.size(); ++file) {
    Pool& pool = pools_[weights.empty() ? 0 : file];
    pool.files.push_back(file);
    pool.ends.push_back((pool.ends.empty() ? 0 : pool.ends.back()) + windows_of(file));
    if (weights.empty()) continue;
    pool.share = file + 1 == sizes.size() ? 1 : weights[file] / left;
    left -= weights[file];
  }
}

std::uint64_t Windows::count() const {
  std::uint64_t count = 0;
  for (const Pool& pool : pools_) count += pool.ends.back();
  return count;
}

Window Windows::window(const Pool& pool, std::uint64_t number) const {
  const auto found = std::upper_bound(pool.ends.begin(), pool.ends.end(), number);
  const std::size_t at = static_cast<std::size_t>(found - pool.ends.begin());
  const std::uint64_t first = at == 0 ? 0 : pool.ends[at - 1];
  Window window{.file = pool.files[at], .begin = number - first};
  if (order_ == Order::random) return window;
  const auto length = static_cast<std::uint64_t>(context_);
  const std::uint64_t begin = window.begin * length, last = sizes_[window.file] - 1 - length;
  window.begin = std::min(begin, last);
  window.skip = static_cast<std::int64_t>(begin - window.begin);
  return window;
}

Window Windows::at(std::uint64_t index) const {
  // Each pool takes its share of what those before it left, evenly spread: of `index` windows, floor(index * share).
  std::size_t at = 0;
  for (; at + 1 < pools_.size(); ++at) {
    const auto taken = [&](std::uint64_t n) {
      return static_cast<std::uint64_t>(std::floor(static_cast<double>(n) * pools_[at].share));
    };
    const std::uint64_t before = taken(index), after = taken(index + 1);
    if (after > before) {
      index = before;
      break;
    }
    index -= before;
  }
  const Pool& pool = pools_[at];
  const std::uint64_t count = pool.ends.back();
  const auto stream = static_cast<std::uint32_t>(at);
  if (order_ == Order::random) return window(pool, Random(seed_, Purpose::kBatch, 0, stream).below(index, count));
  return window(pool, permuted(index % count, count, seed_, index / count, stream));
}

// A Feistel network on the smallest even number of bits that holds the count: a permutation whatever its round function
// is. Walking on along a cycle until the number is small enough keeps it one; four steps at most on average.
std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch,
                       std::uint32_t stream) {
  const Random random(seed, Purpose::kBatch, epoch, stream);
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 8; ++round) {
      const std::uint64_t next = left ^ (random.bits(round << 32 | right) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

} // namespace noether::training
