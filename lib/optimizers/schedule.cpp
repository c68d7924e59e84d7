#include "optimizers/schedule.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace noether::optimizers {
namespace {

/// Weight of the full rate at `progress` in [0, 1] of the decay.
double cosine(double progress) { return (1 + std::cos(std::numbers::pi * progress)) / 2; }
double line(double progress) { return 1 - progress; }

struct Row {
  ScheduleKind kind;
  std::string_view name;
  double (*weight)(double progress); ///< nullptr: no decay
};
constexpr Row kRows[] = {{ScheduleKind::constant, "constant", nullptr},
                         {ScheduleKind::cosine, "cosine", cosine},
                         {ScheduleKind::wsd, "wsd", line}};

const Row& row_of(ScheduleKind kind) {
  return *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.kind == kind; });
}
std::uint64_t decay_begin(const Schedule& schedule, std::uint64_t total) {
  if (schedule.kind != ScheduleKind::wsd) return schedule.warmup;
  return std::max(schedule.warmup, total - std::min(total, schedule.decay_steps));
}

} // namespace

std::string_view name_of(ScheduleKind kind) { return row_of(kind).name; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

ScheduleKind schedule_of(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.kind;
  throw UsageError("no schedule is called {}{}; there are {}", name, did_you_mean(name, schedule_names()),
                   fmt::join(schedule_names(), ", "));
}

double lr_factor(const Schedule& schedule, std::uint64_t step, std::uint64_t total) {
  if (step < schedule.warmup) return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  const Row& row = row_of(schedule.kind);
  if (row.weight == nullptr) return 1;
  const std::uint64_t begin = decay_begin(schedule, total);
  if (step < begin) return 1;
  const double progress = step >= total ? 1 : static_cast<double>(step - begin) / static_cast<double>(total - begin);
  return schedule.final_fraction + (1 - schedule.final_fraction) * row.weight(progress);
}

std::string describe(const Schedule& schedule, std::uint64_t total) {
  std::string text(name_of(schedule.kind));
  if (schedule.kind == ScheduleKind::cosine)
    text += fmt::format(" to {:g} of the rate at step {}", schedule.final_fraction, total);
  if (schedule.kind == ScheduleKind::wsd)
    text += fmt::format(", from step {} on down to {:g} of the rate at step {}", decay_begin(schedule, total),
                        schedule.final_fraction, total);
  if (schedule.warmup > 0) text += fmt::format(", after {} steps of warm-up", schedule.warmup);
  return text;
}

} // namespace noether::optimizers
