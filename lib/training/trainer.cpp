#include "training/trainer.h"

#include "base/error.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

namespace noether::training {
namespace {

/// A part of the rows, as a tensor over the batch's own memory.
at::Tensor rows_of(const std::vector<std::int64_t>& values, const Batch& batch, std::int64_t begin, std::int64_t end) {
  // from_blob asks for a pointer that is not const; nothing writes through it.
  return at::from_blob(const_cast<std::int64_t*>(values.data()) + begin * batch.context, {end - begin, batch.context},
                       at::kLong);
}

std::int64_t first_not_finite(const architecture::Arena& arena) {
  const auto values = arena.span();
  const auto found = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  return found == values.end() ? -1 : found - values.begin();
}

std::string name_at(const std::vector<architecture::Parameter>& layout, std::int64_t index) {
  for (const architecture::Parameter& parameter : layout)
    if (index < parameter.offset + parameter.count) return parameter.name;
  return {};
}

/// Calls use("left/NAME", n) for every side of a matrix that the part's optimizer keeps state of.
template <class Use> void for_each_side(const Part& part, const Use& use) {
  if (!part.optimizer->sides) return;
  for (std::size_t i = 0; i < part.segments.size(); ++i) {
    const auto sides = optimizers::soap_sides(part.segments[i], part.hyperparameters);
    for (const std::size_t s : {0U, 1U})
      if (sides[s] > 0) use(i, s, fmt::format("{}/{}", s == 0 ? "left" : "right", part.segments[i].name), sides[s]);
  }
}

/// Where F0 is to be for a loss, when it has come more than half way down to where it is: `fraction` of the loss below
/// it. Nothing while F0 may stay.
std::optional<double> next_floor(const State& state, double fraction, double loss) {
  if (!state.floors.empty() && loss - state.floors.back().second >= fraction / 2 * loss) return std::nullopt;
  return (1 - fraction) * loss;
}

} // namespace

std::vector<Part> parts_of(const std::vector<architecture::Parameter>& layout, const Settings& settings) {
  std::vector<Part> parts;
  std::vector<bool> decay_matrices_only;
  for (const Group& group : settings.groups) {
    parts.push_back({group.optimizer, group.hyperparameters, {}, {}});
    decay_matrices_only.push_back(group.decay_matrices_only);
  }
  parts.push_back({settings.optimizer, settings.hyperparameters, {}, {}});
  decay_matrices_only.push_back(settings.decay_matrices_only);
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const architecture::Parameter& parameter = layout[i];
    const auto [rows, columns] = parameter.matrix_shape();
    std::size_t p = 0;
    while (p < settings.groups.size() && fnmatch(settings.groups[p].parameters.c_str(), parameter.name.c_str(), 0) != 0)
      ++p;
    Part& part = parts[p];
    part.parameters.push_back(i);
    const std::int64_t length = parameter.count / parameter.matrices;
    for (std::int64_t m = 0; m < parameter.matrices; ++m)
      part.segments.push_back(
          {.offset = parameter.offset + m * length,
           .length = length,
           .decay = !decay_matrices_only[p] || parameter.is_matrix(),
           .rows = rows,
           .columns = columns,
           .vocabulary_rows = parameter.has_vocabulary_rows(),
           .name = parameter.matrices > 1 ? fmt::format("{}/{}", parameter.name, m) : parameter.name});
  }
  for (std::size_t p = 0; p < settings.groups.size(); ++p)
    if (parts[p].parameters.empty()) {
      std::vector<std::string> names;
      for (const architecture::Parameter& parameter : layout) names.push_back(parameter.name);
      throw UsageError("--group {}: no parameter's name matches, or an earlier group has them all{}",
                       settings.groups[p].parameters, did_you_mean(settings.groups[p].parameters, names));
    }
  if (parts.back().parameters.empty()) parts.pop_back(); // the groups have them all
  std::stable_partition(parts.begin(), parts.end(), [](const Part& part) {
    const auto& options = part.optimizer->options;
    return std::find(options.begin(), options.end(), "f0") != options.end();
  });
  return parts;
}

bool has_state(const architecture::Checkpoint& checkpoint, const std::vector<Part>& parts) {
  const auto& training = checkpoint.training;
  std::map<std::string, std::vector<bool>> needed;
  std::size_t sides = 0;
  bool all = true;
  for (const Part& part : parts) {
    for (const std::string_view name : part.optimizer->state) {
      std::vector<bool>& holders = needed[std::string(name)];
      holders.resize(checkpoint.layout.size());
      for (const std::size_t parameter : part.parameters) holders[parameter] = true;
    }
    for_each_side(part, [&](std::size_t, std::size_t, const std::string& name, std::int64_t) {
      ++sides;
      all = all && training.sides.contains(name);
    });
  }
  return all && sides == training.sides.size() && needed == training.holders;
}

std::vector<optimizers::Arena<float>> arenas_of(architecture::Checkpoint& checkpoint, architecture::Arena& gradients,
                                                const std::vector<Part>& parts) {
  std::vector<optimizers::Arena<float>> arenas;
  auto& training = checkpoint.training;
  for (const Part& part : parts) {
    optimizers::Arena<float> arena{checkpoint.parameters.data(), gradients.data(), {}, part.segments};
    for (const std::string_view name : part.optimizer->state) {
      architecture::Arena& state = training.optimizer[std::string(name)];
      if (state.empty()) state = architecture::Arena(checkpoint.parameters.size());
      arena.state.push_back(state.data());
      std::vector<bool>& holders = training.holders[std::string(name)];
      holders.resize(checkpoint.layout.size());
      for (const std::size_t parameter : part.parameters) holders[parameter] = true;
    }
    for_each_side(part, [&](std::size_t i, std::size_t s, const std::string& name, std::int64_t n) {
      architecture::Arena& side = training.sides[name];
      if (side.empty()) side = architecture::Arena((n + 1) * n);
      arena.sides.resize(part.segments.size());
      arena.sides[i][s] = side.data();
    });
    arenas.push_back(std::move(arena));
  }
  return arenas;
}

std::int64_t state_bytes(const std::vector<Part>& parts) {
  std::int64_t numbers = 0;
  for (const Part& part : parts) {
    for (const optimizers::Segment& segment : part.segments)
      numbers += segment.length * static_cast<std::int64_t>(part.optimizer->state.size());
    for_each_side(part, [&](std::size_t, std::size_t, const std::string&, std::int64_t n) { numbers += (n + 1) * n; });
  }
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

Trainer::Trainer(architecture::Checkpoint& checkpoint, const Settings& settings, int threads)
    : checkpoint_(checkpoint), settings_(settings), threads_(threads), gradients_(checkpoint.parameters.size()) {
  at::set_num_threads(threads);
  model_ = models::bind(checkpoint.config, checkpoint.parameters, &gradients_);
  model_.precision = settings.precision;
  parts_ = parts_of(checkpoint.layout, settings);
  arenas_ = arenas_of(checkpoint, gradients_, parts_);
  if (parts_.size() > 1)
    for (const Part& part : parts_) whole_.insert(whole_.end(), part.segments.begin(), part.segments.end());
}

StepReport Trainer::step(State& state, const Batch& batch) try {
  std::fill_n(gradients_.data(), gradients_.size(), 0.0F);
  const models::StepBiases biases = models::sampled_biases(checkpoint_.config, settings_.seed, state.step);
  StepReport report;
  for (std::int64_t part = 0; part < settings_.accumulate; ++part) {
    const std::int64_t begin = batch.rows * part / settings_.accumulate,
                       end = batch.rows * (part + 1) / settings_.accumulate;
    // Every token of the whole batch weighs the same, in whichever part it is.
    const at::Tensor loss =
        models::loss(model_, rows_of(batch.tokens, batch, begin, end), rows_of(batch.targets, batch, begin, end),
                     biases, 1.0 / static_cast<double>(batch.counted));
    loss.backward();
    report.loss += loss.item<double>();
  }

  const double factor = optimizers::lr_factor(settings_.schedule, state.step, settings_.schedule_steps);
  report.learning_rate = settings_.hyperparameters.lr * factor;
  const double smoothed =
      state.step == 0 ? report.loss : state.smoothed_loss + 0.1 * (report.loss - state.smoothed_loss);
  bool finite = std::isfinite(report.loss);
  if (finite && settings_.f0_fraction) {
    report.floor = next_floor(state, *settings_.f0_fraction, std::min(report.loss, smoothed));
    for (Part& part : parts_) part.hyperparameters.f0 = report.floor ? *report.floor : state.floors.back().second;
  }
  if (finite) {
    optimizers::StepContext context{.lr_factor = factor,
                                    .taken = state.optimizer_steps,
                                    .step = state.step,
                                    .seed = settings_.seed,
                                    .loss = report.loss,
                                    .start_distance = state.start_distance,
                                    .threads = threads_};
    double start_distance = state.start_distance;
    if (parts_.size() > 1) {
      const optimizers::Arena<float> all{checkpoint_.parameters.data(), gradients_.data(), {}, whole_};
      context.gradient_norm = optimizers::gradient_norm(all, threads_);
      finite = std::isfinite(context.gradient_norm);
    }
    try {
      for (std::size_t i = 0; i < parts_.size() && finite; ++i) {
        const optimizers::StepResult result = parts_[i].optimizer->step(arenas_[i], parts_[i].hyperparameters, context);
        report.gradient_norm = result.gradient_norm;
        report.fallbacks += result.fallbacks;
        report.distance = std::max(report.distance, result.distance);
        finite = std::isfinite(result.gradient_norm);
        if (state.optimizer_steps == 0 && result.distance > 0) start_distance = result.distance;
      }
    } catch (const optimizers::FloorError& error) {
      throw optimizers::FloorError("step {}: {}", state.step + 1, error.what());
    } catch (const DivergedError& error) {
      throw DivergedError("step {}: {}", state.step + 1, error.what());
    }
    if (finite) state.start_distance = start_distance;
  }
  if (!finite) {
    const std::int64_t parameter = first_not_finite(checkpoint_.parameters), gradient = first_not_finite(gradients_);
    const std::string tensor = parameter >= 0  ? name_at(checkpoint_.layout, parameter)
                               : gradient >= 0 ? "the gradient of " + name_at(checkpoint_.layout, gradient)
                                               : "none of the parameters and gradients: their squares overflow";
    // Whether a nan has a minus sign depends on the processor.
    throw DivergedError("step {}: the loss is {:g}; the first tensor that is not finite: {}", state.step + 1,
                        std::abs(report.loss), tensor);
  }
  if (report.floor) state.floors.emplace_back(state.step, *report.floor);
  state.smoothed_loss = smoothed;
  ++state.step;
  ++state.optimizer_steps;
  state.windows += static_cast<std::uint64_t>(batch.rows);
  state.tokens += static_cast<std::uint64_t>(batch.counted);
  return report;
} catch (const c10::Error& error) {
  throw Error("step {}: {}", state.step + 1, error.what_without_backtrace());
}

void Trainer::record(unsigned what, const State& state, const Batch& batch,
                     const std::function<void(const std::vector<Cell>&)>& out) try {
  training::record(what, state.step, checkpoint_, model_, gradients_, batch,
                   models::sampled_biases(checkpoint_.config, settings_.seed, state.step - 1), out);
} catch (const c10::Error& error) {
  throw Error("what is recorded: {}", error.what_without_backtrace());
}

double Trainer::validate(const Batch& batch) const try {
  const models::Model model = [&] {
    models::Model bound = models::bind(checkpoint_.config, checkpoint_.parameters);
    bound.precision = settings_.precision;
    return bound;
  }();
  const models::StepBiases biases = models::mean_biases(checkpoint_.config);
  double sum = 0;
  const std::int64_t part = std::max<std::int64_t>(1, settings_.batch / settings_.accumulate);
  for (std::int64_t begin = 0; begin < batch.rows; begin += part) {
    const std::int64_t end = std::min(begin + part, batch.rows);
    sum += models::token_losses(model, rows_of(batch.tokens, batch, begin, end),
                                rows_of(batch.targets, batch, begin, end), biases)
               .sum(at::kDouble)
               .item<double>();
  }
  return sum / static_cast<double>(batch.counted);
} catch (const c10::Error& error) {
  throw Error("validation: {}", error.what_without_backtrace());
}

std::string Trainer::not_finite() const {
  const std::int64_t index = first_not_finite(checkpoint_.parameters);
  return index < 0 ? "" : name_at(checkpoint_.layout, index);
}

std::int64_t Trainer::state_bytes() const { return training::state_bytes(parts_); }

std::int64_t Trainer::bytes() const {
  return state_bytes() + 2 * checkpoint_.parameters.size() * static_cast<std::int64_t>(sizeof(float));
}

} // namespace noether::training
