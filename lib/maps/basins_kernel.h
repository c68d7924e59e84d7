// Steps of many points at once, in vectors: for this room alone.
#pragma once

#include <cstdint>

namespace noether::maps {

/// Points that move together: several vectors of any instruction set, so that a step's latency is hidden.
inline constexpr int kLanes = 32;

struct Lanes {
  alignas(64) double mu[kLanes], a[kLanes], b[kLanes];
};
/// Moves all lanes by `steps` steps, the same bits on every instruction set. Bit i of what is returned: point i is
/// beyond kEscape (or not finite), or its error is at most `tolerance`.
std::uint32_t advance(Lanes& lanes, std::int64_t steps, double tolerance);

} // namespace noether::maps
