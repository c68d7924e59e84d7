// One step of training: gradients of a batch, in parts, and the optimizer on the arenas. Knows nothing of files and
// messages.
#pragma once

#include "architecture/checkpoint.h"
#include "models/model.h"
#include "training/batch.h"
#include "training/record.h"
#include "training/state.h"

namespace noether::training {

struct StepReport {
  double loss = 0; ///< mean over the targets that count, nats a token, before the step
  double gradient_norm = 0;
  double learning_rate = 0;
  int fallbacks = 0;           ///< SOAP's factorisations that needed float64
  double distance = 0;         ///< of the loss from ECD's F0, in nats; 0 for others
  std::optional<double> floor; ///< F0, where --f0 auto has set it anew for this step
};

/// The parameters that one optimizer moves.
struct Part {
  const optimizers::Optimizer* optimizer = nullptr;
  optimizers::Hyperparameters hyperparameters;
  std::vector<std::size_t> parameters; ///< in the layout
  std::vector<optimizers::Segment> segments;
};
/// Every parameter is in one part: that of the first group whose pattern its name matches, or that of the run's own
/// optimizer. A part that ECD moves is the first: it may refuse a step, and nothing must have been changed then. Throws
/// UsageError for a group without parameters.
std::vector<Part> parts_of(const std::vector<architecture::Parameter>& layout, const Settings& settings);

/// Whether the checkpoint has all the state that the parts' optimizers need, and no other.
bool has_state(const architecture::Checkpoint& checkpoint, const std::vector<Part>& parts);

/// What the parts' optimizers work on, in the checkpoint, whose missing state begins as zeros. The arenas borrow all
/// three.
std::vector<optimizers::Arena<float>> arenas_of(architecture::Checkpoint& checkpoint, architecture::Arena& gradients,
                                                const std::vector<Part>& parts);
/// Of the parts' optimizer state.
std::int64_t state_bytes(const std::vector<Part>& parts);

class Trainer {
public:
  /// Works on the checkpoint's arenas in place; both must outlive it. Optimizer state that the checkpoint lacks begins
  /// as zeros.
  Trainer(architecture::Checkpoint& checkpoint, const Settings& settings, int threads);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One step on the batch, as step `state.step` of the run. Counts it in `state` when it is done.
  /// Throws, with nothing changed, DivergedError for a loss or gradient that is not finite ("step 132: the loss is nan;
  /// the first tensor that is not finite: the gradient of layers/3/mlp/W_up"), and optimizers::FloorError at ECD's
  /// floor.
  StepReport step(State& state, const Batch& batch);

  /// After step(), on its batch: hands rows of `what` (training/record.h) to `out`. For balance,
  /// keep_references() must have been called on the checkpoint.
  void record(unsigned what, const State& state, const Batch& batch,
              const std::function<void(const std::vector<Cell>&)>& out);

  /// Mean loss over the batch with mean biases, in nats a token.
  double validate(const Batch& batch) const;

  /// The name of the first parameter that is not finite, or "".
  std::string not_finite() const;

  std::int64_t state_bytes() const; ///< of the optimizer's state
  std::int64_t bytes() const;       ///< of parameters, gradients and that

private:
  architecture::Checkpoint& checkpoint_;
  Settings settings_;
  int threads_;
  architecture::Arena gradients_;
  models::Model model_;
  std::vector<Part> parts_;
  std::vector<optimizers::Arena<float>> arenas_; ///< of the parts
  std::vector<optimizers::Segment> whole_;       ///< all segments, whose gradient's norm several parts share
};

} // namespace noether::training
