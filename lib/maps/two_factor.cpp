#include "maps/two_factor.h"

#include <algorithm>
#include <complex>

namespace noether::maps {

double ellipse_repulsion(double mu) {
  const std::complex<double> r = std::polar(1.0, std::acos(-mu / 2)), root = std::sqrt(r * r - 4.0);
  return 2 * std::log(std::max(std::abs(r + root), std::abs(r - root)) / 2);
}

} // namespace noether::maps
