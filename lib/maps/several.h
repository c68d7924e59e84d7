// Several prompts at once, with one pair of factors for all of them or with a second factor for each.
#pragma once

#include "maps/two_factor.h"

#include <vector>

namespace noether::maps {

/// Prompt i has the prediction u w s_i, of the target y_i, and the loss is the mean of (u w s_i - y_i)^2 / 2. mus[i] =
/// lr s_i y_i, and scales[i] = s_i in some unit, so that the target in the units of what follows is mus[i] / scales[i].
struct Prompts {
  std::vector<double> mus, scales;
};

/// One pair of factors comes to the two-factor map, whatever the prompts: with kappa = mean scale^2, mu = mean mus, a =
/// sqrt(lr kappa) u and b = sqrt(lr kappa) w it is (a - (ab - mu) b, b - (ab - mu) a), and the loss is e^2 / (2 kappa)
/// and a floor, by which single predictions differ. So training sees no more of several prompts than two means.
struct Shared {
  double mu = 0, kappa = 1;
  double floor = 0; ///< mean target^2 / 2 - mu^2 / (2 kappa), the least loss
};
Shared shared(const Prompts& prompts);
/// What is wrong with each prediction, scale ab / kappa - target, at a point of that map.
std::vector<double> errors(const Prompts& prompts, const Shared& shared, Point p);

/// A second factor for each of the P prompts: predictions u w_i s_i. With a = sqrt(lr / P) u, b_i = sqrt(lr / P) w_i
/// and m_i = target_i / P,
///
///     a' = a - sum_i (s_i a b_i - m_i) s_i b_i,    b_i' = b_i - (s_i a b_i - m_i) s_i a.
///
/// Where all scales are 1 only the length M of m matters: with b = along m / M + beside, beside at right angles to m,
///
///     a' = a - (a along - M) along - a beside^2,   along' = along - (a along - M) a,   beside' = (1 - a^2) beside,
///
/// the two-factor map at M = sqrt(sum mus^2) / P and one direction more, which is at right angles to all that is to be
/// learned. Every minimum has no loss left, and beside = 0.
struct Separate {
  double a = 0;
  std::vector<double> b; ///< one a prompt
};
void step(const Prompts& prompts, Separate& state);
/// P s_i a b_i - target_i; the loss is their mean square, halved.
std::vector<double> errors(const Prompts& prompts, const Separate& state);
/// M, for scales that are all 1; and the two parts of b.
struct Parts {
  double length = 0, along = 0, beside = 0;
};
Parts parts_of(const Prompts& prompts, const Separate& state);

/// The mean square, halved.
double loss_of(const std::vector<double>& errors);

} // namespace noether::maps
