// Optimizers over one flat arena: a step is one pass over memory that sums and one that updates, whatever the model's
// tensors are.
#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace noether::optimizers {

/// ECD's loss has come down to F0. The parameters are as good as they ever were: worth saving.
struct FloorError : DivergedError {
  using DivergedError::DivergedError;
};

/// One parameter tensor's place in the arena, in numbers. Places between segments belong to nobody and are left alone.
struct Segment {
  std::int64_t offset = 0, length = 0;
  bool decay = true; ///< whether weight decay acts on it
  /// Of a matrix, row by row; 0: it is none. Only SOAP looks at these.
  std::int64_t rows = 0, columns = 0;
  bool vocabulary_rows = false; ///< a row for each token
  std::string name = {};        ///< for messages, and of its state in files
};

/// Flat arrays, one number a parameter, all laid out alike, and the tensors in them in the order of their offsets.
template <class Real> struct Arena {
  Real* theta = nullptr;
  const Real* grad = nullptr;
  std::vector<Real*> state; ///< in the order of Optimizer::state; zeros before the first step
  std::span<const Segment> segments;
  /// SOAP: for each segment the left and the right side's [n + 1, n] numbers, zeros before the first step; nullptr
  /// where soap_sides() is 0. Empty for the others.
  std::vector<std::array<Real*, 2>> sides = {};
};

/// Every hyperparameter of every optimizer; which of them an optimizer looks at is in its row of the table.
struct Hyperparameters {
  double lr = 0;
  double weight_decay = 0;
  double clip = 0; ///< gradients are scaled down to this norm when theirs is larger; 0: never
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double momentum = 0.95;
  bool nesterov = true;
  double eta = 100, f0 = 2, nu = 0;
  bool per_tensor = false;
  double s = 1, delta_energy = 0;
  std::int64_t precondition_every = 10, precondition_limit = 10000;
  bool precondition_vocabulary = false, apply_first_step = false;

  bool operator==(const Hyperparameters&) const = default;
};

/// What a step needs to know besides the arrays.
struct StepContext {
  double lr_factor = 1;    ///< the schedule's: the rate of this step is lr * lr_factor
  std::uint64_t taken = 0; ///< steps that this state has seen
  std::uint64_t step = 0;  ///< the run's step: with seed it keys random draws
  std::uint64_t seed = 0;
  double loss = 0; ///< nats a token, without decay; only ECD looks at it
  /// Of all gradients, where other optimizers move a part of them; negative: this one moves all, and finds out.
  double gradient_norm = -1;
  double start_distance = 0; ///< ECDSep: StepResult::distance of the first step that this state has seen
  int threads = 0;           ///< results do not depend on it
};

struct StepResult {
  double gradient_norm = 0; ///< before clipping. When it is not finite, nothing has been changed.
  double distance = 0;      ///< ECD's F - F0 in nats, 0 for the others
  int fallbacks = 0;        ///< SOAP's factorisations that float32 did not do, and float64 did
};

/// The Euclidean norm of the gradient over all segments.
template <class Real> double gradient_norm(const Arena<Real>& arena, int threads);

/// AdamW (Loshchilov and Hutter, arXiv 1711.05101) in PyTorch's form, bias correction included. state: momentum,
/// second_moment.
template <class Real>
StepResult adamw_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context);

/// Gradient descent with momentum in PyTorch's form: b <- momentum b + G, theta <- theta - lr b, or with Nesterov
/// theta <- theta - lr (G + momentum b), where G = grad + weight_decay theta. state: momentum.
template <class Real>
StepResult sgdm_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context);

/// Energy conserving descent, q = 1 (arXiv 2601.22257, section 3; the method note's section 3). state: momentum. Its
/// direction is the state; its length is free, since each step begins by making it 1. The dot product (P . G) is over
/// all parameters, or with per_tensor over each tensor, as in the authors' published code. Throws DivergedError, with
/// nothing changed, when loss + decay is not above f0.
template <class Real>
StepResult ecd_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context);

/// Energy conserving descent in its separable form, ECDSep (arXiv 2306.00352; the method note's section 3):
/// |P|^2 = E / V - s with V = (F - F0)^eta and E = V0 (s + deltaEn), P <- P - lr eta G / (F - F0),
/// Theta <- Theta + 2 lr P / (s + |P|^2). state: momentum. Throws as ecd_step does.
template <class Real>
StepResult ecdsep_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context);

/// SOAP (Vyas et al., arXiv 2409.11321): Adam in the eigenbasis of the factors L = mean of G G^T and R = mean of G^T G,
/// for each matrix; the bases are renewed every precondition_every steps. What is no matrix, or longer than
/// precondition_limit, is not turned. Factors are summed and decomposed in float32 products, whatever the model's
/// precision. The first step only makes the bases, unless apply_first_step. state: momentum, second_moment, both of
/// them turned; and Arena::sides. Throws DivergedError for a gradient whose square overflows, with nothing changed.
/// Results may depend on the number of threads in the last digits.
template <class Real>
StepResult soap_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context);
/// Lengths of the left and the right side that SOAP turns; 0: it does not.
std::array<std::int64_t, 2> soap_sides(const Segment& segment, const Hyperparameters& h);

/// One row of the table of optimizers.
struct Optimizer {
  std::string_view name;
  std::vector<std::string_view> state; ///< names of its state arrays, each as long as the arena
  /// Hyperparameters that it looks at besides lr, weight_decay and clip, named as the program's options are.
  std::vector<std::string_view> options;
  Hyperparameters defaults;
  StepResult (*step)(const Arena<float>&, const Hyperparameters&, const StepContext&);
  StepResult (*step64)(const Arena<double>&, const Hyperparameters&, const StepContext&);
  bool sides = false; ///< whether it keeps Arena::sides
};

/// All optimizers, in the order in which they are listed to people.
const std::vector<Optimizer>& all_optimizers();
std::vector<std::string> optimizer_names();
/// Throws UsageError with a suggestion when there is none of that name.
const Optimizer& optimizer_of(std::string_view name);

} // namespace noether::optimizers
