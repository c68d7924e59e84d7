// Compiled once for each instruction set; the best that the processor has is taken at run time.
#include "maps/basins_kernel.h"

#include "maps/two_factor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "maps/basins_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace noether::maps::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

std::uint32_t advance_lanes(Lanes& lanes, std::int64_t steps, double tolerance) {
  const hn::CappedTag<double, 8> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kWidth = static_cast<int>(hn::MaxLanes(d)), kVectors = kLanes / kWidth;
  // Four vectors at a time stay in registers with what a step needs besides.
  constexpr int kTogether = kVectors < 4 ? kVectors : 4;
  const V limit = hn::Set(d, kEscape), small = hn::Set(d, tolerance);
  std::uint32_t done = 0;
  for (int first = 0; first < kVectors; first += kTogether) {
    V mu[kTogether], a[kTogether], b[kTogether];
    for (int i = 0; i < kTogether; ++i) {
      const int at = (first + i) * kWidth;
      mu[i] = hn::Load(d, lanes.mu + at);
      a[i] = hn::Load(d, lanes.a + at);
      b[i] = hn::Load(d, lanes.b + at);
    }
    for (std::int64_t n = 0; n < steps; ++n)
      for (int i = 0; i < kTogether; ++i) { // as step() in two_factor.h
        const V e = hn::Sub(hn::Mul(a[i], b[i]), mu[i]);
        const V next = hn::Sub(a[i], hn::Mul(e, b[i]));
        b[i] = hn::Sub(b[i], hn::Mul(e, a[i]));
        a[i] = next;
      }
    for (int i = 0; i < kTogether; ++i) {
      const int at = (first + i) * kWidth;
      hn::Store(a[i], d, lanes.a + at);
      hn::Store(b[i], d, lanes.b + at);
      const auto inside = hn::And(hn::Le(hn::Abs(a[i]), limit), hn::Le(hn::Abs(b[i]), limit)); // false for nan
      const auto far = hn::Gt(hn::Abs(hn::Sub(hn::Mul(a[i], b[i]), mu[i])), small);
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::And(inside, far), bits);
      done |= static_cast<std::uint32_t>(~bits[0] & ((1U << kWidth) - 1)) << at;
    }
  }
  return done;
}

} // namespace
} // namespace noether::maps::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace noether::maps {
namespace {
HWY_EXPORT(advance_lanes);
}

std::uint32_t advance(Lanes& lanes, std::int64_t steps, double tolerance) {
  return HWY_DYNAMIC_DISPATCH(advance_lanes)(lanes, steps, tolerance);
}

} // namespace noether::maps
#endif
