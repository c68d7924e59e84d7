// Passes over the arena in blocks of fixed size: sums come out the same for any number of threads and on any processor,
// because blocks, lanes and the order in which they are added never change.
#pragma once

#include "base/threads.h"
#include "optimizers/optimizer.h"

#include <array>
#include <cstring>

// Compiled once for each of these, chosen when the program starts. Products and sums are not fused (-ffp-contract=off),
// so the numbers are the same on all of them. Clang has the attribute but cannot call an always_inline function from
// all versions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define NOETHER_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define NOETHER_CLONES
#endif

namespace noether::optimizers {

/// A piece of one segment.
struct Block {
  std::int64_t begin, end; ///< in the arena
  std::size_t segment;
};

/// 64 Ki numbers: 256 KiB in float32, so that a block of several arrays stays within a core's cache.
inline constexpr std::int64_t kBlock = 65536;

inline std::vector<Block> blocks_of(std::span<const Segment> segments) {
  std::vector<Block> blocks;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::int64_t end = segments[s].offset + segments[s].length;
    for (std::int64_t begin = segments[s].offset; begin < end; begin += kBlock)
      blocks.push_back({begin, std::min(begin + kBlock, end), s});
  }
  return blocks;
}

inline std::int64_t count_of(std::span<const Segment> segments) {
  std::int64_t count = 0;
  for (const Segment& segment : segments) count += segment.length;
  return count;
}

/// work(block index, block) for every block. A thread costs more than it brings below some 200 thousand numbers.
template <class Work> void for_blocks(const std::vector<Block>& blocks, std::int64_t count, int threads, Work&& work) {
  if (threads <= 0) threads = usable_processors();
  threads = static_cast<int>(std::min<std::int64_t>(threads, 1 + count / 200'000));
  parallel_for(static_cast<std::int64_t>(blocks.size()), threads,
               [&](std::int64_t i) { work(static_cast<std::size_t>(i), blocks[static_cast<std::size_t>(i)]); });
}

/// Partial sums in double: a sum of 1e8 squares loses three digits in float. Four, so that six such sums stay in 16
/// registers.
using Lanes = double __attribute__((vector_size(32)));
inline constexpr std::int64_t kLanes = 4;

/// kLanes numbers of an array, widened. Vectors are passed by reference: by value their calling convention would depend
/// on the processor.
__attribute__((always_inline)) inline void widen(const float* from, Lanes& to) {
  float __attribute__((vector_size(16))) narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  to = __builtin_convertvector(narrow, Lanes);
}
__attribute__((always_inline)) inline void widen(const double* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
/// Fewer than kLanes, the rest zeros.
template <class Real>
__attribute__((always_inline)) inline void widen(const Real* from, std::int64_t count, Lanes& to) {
  to = Lanes{};
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
}
__attribute__((always_inline)) inline double sum_of(const Lanes& v) { return (v[0] + v[2]) + (v[1] + v[3]); }

/// Sixteen numbers side by side, kRun of which are added up in float before the sum goes on in double: rounding stays
/// that of a few additions, and the pass is as fast as memory.
using Floats = float __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(128)));
inline constexpr std::int64_t kFloats = 16, kRun = 16;
__attribute__((always_inline)) inline double sum_of(const Doubles& v) {
  double sum = 0;
  for (std::int64_t lane = 0; lane < kFloats; ++lane) sum += v[lane];
  return sum;
}

/// The norm that clipping goes by.
template <class Real> double norm_of(const Arena<Real>& arena, const StepContext& context) {
  return context.gradient_norm < 0 ? gradient_norm(arena, context.threads) : context.gradient_norm;
}

/// What gradients are multiplied by so that their norm is at most `clip` (0: 1).
inline double clip_scale(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1; }

} // namespace noether::optimizers
