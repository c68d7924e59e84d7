// One layer of linear self-attention that predicts a query's target from a prompt, in float64; and the two-factor map
// that its training comes to. Gradients are written out: no tensor library is needed here.
#pragma once

#include "maps/two_factor.h"
#include "regression/prompts.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace noether::regression {

/// On tokens (x_i, y_i) and the query's (x_q, 0), the columns of E, the prediction is the query's last component of
///
///     W_V E (E^T W_KQ e_q) / pairs,
///
/// of which only the last row of W_V and the first columns of W_KQ matter: these are the parameters. Either both
/// matrices are trained; or one factor of each, W_V = u (0, .., 0, 1) and W_KQ = w (1 / sqrt(dimension); 0), so that
/// the prediction is u w s, s = x_q^T mean_i(y_i x_i) / sqrt(dimension). Source: arXiv 2605.21292, section 2; for the
/// shape of the tokens Zhang, Frei and Bartlett, arXiv 2306.09927.
struct LinearTransformer {
  std::int64_t dimension = 1;    ///< components of an x
  bool matrices = false;         ///< both matrices are trained, and not a factor of each
  std::vector<double> value;     ///< u; or [dimension + 1]
  std::vector<double> key_query; ///< w; or [dimension + 1, dimension]
};

struct StartOptions {
  std::int64_t dimension = 1;
  bool matrices = false;
  double value = 0.5, key_query = 0.5; ///< u and w
  double deviation = 0;                ///< of the normal noise that is added to matrices, all over
  std::uint64_t seed = 0;
};
LinearTransformer start(const StartOptions& options);

/// The two factors: of matrices what lies along the shapes that the factors have, both of length 1.
struct Factors {
  double value = 0, key_query = 0;
  double beside = 0; ///< length of all that lies beside those shapes
};
Factors factors_of(const LinearTransformer& model);

/// What attention reads of prompts, ready for training.
class Regression {
public:
  explicit Regression(const Prompts& prompts);

  std::int64_t count() const { return static_cast<std::int64_t>(targets_.size()); }

  /// The loss, the mean of (prediction - target)^2 / 2 over the prompts whose numbers are given (all of them for none),
  /// and its gradient, in the model's own form. Sums go by the order of the prompts.
  double loss(const LinearTransformer& model, std::span<const std::int64_t> batch, LinearTransformer& gradient) const;
  double prediction(const LinearTransformer& model, std::int64_t prompt) const;

  /// What the two factors' training depends on, besides the learning rate: means and standard deviations over prompts.
  /// Descent on all of them is the two-factor map with mu = lr nu and (a, b) = sqrt(lr kappa) (u, w), and its loss is
  /// e^2 / (2 lr^2 kappa) above the floor. One prompt has kappa = s^2, nu = s y, and floor 0.
  struct Moments {
    double kappa = 0, nu = 0;                     ///< means of s^2 and s y
    double kappa_deviation = 0, nu_deviation = 0; ///< of them from prompt to prompt
    double floor = 0;                             ///< the least loss
  };
  Moments moments() const;

private:
  std::int64_t dimension_ = 0;
  std::vector<double> gram_;    ///< [count, dimension + 1, dimension + 1]: E E^T / pairs
  std::vector<double> queries_; ///< [count, dimension]
  std::vector<double> targets_; ///< [count]
};

/// Where descent with this learning rate is on the two-factor map; of matrices by their factors.
maps::Point coordinates(const LinearTransformer& model, const Regression::Moments& moments, double learning_rate);

/// A checkpoint of the family linear-transformer: noether-format(5).
struct LinearCheckpoint {
  LinearTransformer model;
  nlohmann::ordered_json training; ///< null in a fresh one
  std::map<std::string, std::vector<double>> history;
  std::vector<std::string> provenance; ///< JSON records, oldest first
  std::string digest, name;            ///< "" when fresh
};
/// Whether a file is one, and no other model.
bool is_linear_transformer(const store::FileReader& file);
LinearCheckpoint read_linear_checkpoint(const store::FileReader& file);
store::FileWriter to_file(const LinearCheckpoint& checkpoint);
/// Throws Error when the prompts are not of the model's dimension.
void check_fit(const Prompts& prompts, const LinearCheckpoint& checkpoint);

} // namespace noether::regression
