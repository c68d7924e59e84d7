// Which stretches of the token files a step trains on: a pure function of the seed and of how many windows came before,
// so that a resumed run goes on with the very next one. Holds no tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace noether::training {

/// random: each window begins anywhere, drawn with replacement. shuffle: the files are cut into windows end to end, and
/// each comes once, in an order that is new in every pass.
enum class Order { random, shuffle };

/// context tokens from `begin` on, each predicting the one after it.
struct Window {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::int64_t skip =
      0; ///< the first of its targets, which the window before had already: a file's last window overlaps it
};

class Windows {
public:
  /// sizes: tokens of each file, at least context + 1. weights: the share of each file; empty: all files are one, so
  /// that long ones come more often.
  Windows(const std::vector<std::uint64_t>& sizes, const std::vector<double>& weights, std::int64_t context,
          Order order, std::uint64_t seed);

  /// The window that comes after `index` others, counted from the beginning of the run.
  Window at(std::uint64_t index) const;
  /// Different windows in all.
  std::uint64_t count() const;

private:
  /// Files that are drawn from together.
  struct Pool {
    std::vector<std::size_t> files;
    std::vector<std::uint64_t> ends; ///< windows up to and with each file
    double share = 1;                ///< of the windows that no pool before it took
  };
  Window window(const Pool& pool, std::uint64_t number) const;

  std::vector<std::uint64_t> sizes_;
  std::vector<Pool> pools_;
  std::int64_t context_;
  Order order_;
  std::uint64_t seed_;
};

/// Where `index` goes in the permutation of 0 .. count - 1 that (seed, epoch, stream) names. Sixteen calls of the
/// generator or so, and no table. index < count.
std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch,
                       std::uint32_t stream);

} // namespace noether::training
