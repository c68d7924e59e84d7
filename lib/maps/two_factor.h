// The two-factor map: gradient descent on 1/2 (u w s - y)^2, in coordinates where the step size and the target are one
// number, mu = lr s y. Source: arXiv 2605.21292.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

namespace noether::maps {

/// One step, (a, b) <- (a - (ab - mu) b, b - (ab - mu) a), of numbers or of vectors of them (anything with - and *).
/// Products and sums are not fused, so that every instruction set gives the same bits.
template <class Real> void step(Real& a, Real& b, const Real& mu) {
  const Real e = a * b - mu;
  const Real next = a - e * b;
  b = b - e * a;
  a = next;
}

struct Point {
  double a = 0, b = 0;
};

/// e = ab - mu, w = a - b; the loss is e^2 / 2.
inline double error_of(double mu, Point p) { return p.a * p.b - mu; }
inline double imbalance_of(Point p) { return p.a - p.b; }

/// (e, w) after a step: e' = e^3 + (mu - 2) e^2 + (1 - 2 mu - w^2) e, w' = (1 + e) w.
inline std::pair<double, double> step_error(double mu, double e, double w) {
  return {((e + (mu - 2)) * e + (1 - 2 * mu - w * w)) * e, (1 + e) * w};
}
/// The same on the balanced line, w = 0, where it is a cubic of e; and its derivative.
inline double cubic(double mu, double e) { return step_error(mu, e, 0).first; }
inline double cubic_slope(double mu, double e) { return (3 * e + 2 * (mu - 2)) * e + 1 - 2 * mu; }
/// Where the slope is 0, besides e = 1, which falls on -mu: a fixed point that repels, its slope being (mu + 1)^2.
/// Every attracting cycle of a cubic attracts a point of slope 0, so there is at most one, and this point's orbit finds
/// it.
inline double critical_point(double mu) { return (1 - 2 * mu) / 3; }

/// D = w^2 - (2 - mu)(2 - e): 0 on the invariant ellipse (a + b)^2 / (2 + mu) + (a - b)^2 / (2 - mu) = 4, negative
/// inside it, for 0 < mu < 2. A step multiplies it by 1 + mu e + e^2.
inline double ellipse(double mu, Point p) {
  const double w = imbalance_of(p);
  return w * w - (2 - mu) * (2 - error_of(mu, p));
}
/// The exponent at which the ellipse repels, exactly: 2 ln |z|, z being the larger root of z + 1/z = r, r = exp(i phi),
/// cos(phi) = -mu / 2. 0 < mu < 2.
double ellipse_repulsion(double mu);

/// An orbit counts as diverged beyond this in |a| or |b|: there a step multiplies an error that is not 0 by some
/// kEscape^2, so that all but a set of measure zero grow without bound.
inline constexpr double kEscape = 1e6;
inline bool escaped(Point p) { return !(std::abs(p.a) <= kEscape && std::abs(p.b) <= kEscape); }

} // namespace noether::maps
