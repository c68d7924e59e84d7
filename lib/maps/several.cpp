#include "maps/several.h"

namespace noether::maps {
namespace {

double target(const Prompts& prompts, std::size_t i) { return prompts.mus[i] / prompts.scales[i]; }

} // namespace

Shared shared(const Prompts& prompts) {
  const auto count = static_cast<double>(prompts.mus.size());
  Shared found{0, 0};
  double squares = 0;
  for (std::size_t i = 0; i < prompts.mus.size(); ++i) {
    found.mu += prompts.mus[i] / count;
    found.kappa += prompts.scales[i] * prompts.scales[i] / count;
  }
  // As a sum of squares it cannot come out negative.
  for (std::size_t i = 0; i < prompts.mus.size(); ++i) {
    const double rest = target(prompts, i) - prompts.scales[i] * found.mu / found.kappa;
    squares += rest * rest / count;
  }
  found.floor = squares / 2;
  return found;
}

std::vector<double> errors(const Prompts& prompts, const Shared& shared, Point p) {
  std::vector<double> found;
  for (std::size_t i = 0; i < prompts.mus.size(); ++i)
    found.push_back(prompts.scales[i] * p.a * p.b / shared.kappa - target(prompts, i));
  return found;
}

void step(const Prompts& prompts, Separate& state) {
  const auto count = static_cast<double>(prompts.mus.size());
  double change = 0;
  for (std::size_t i = 0; i < prompts.mus.size(); ++i) {
    const double scale = prompts.scales[i], e = scale * state.a * state.b[i] - target(prompts, i) / count;
    change += e * scale * state.b[i];
    state.b[i] -= e * scale * state.a;
  }
  state.a -= change;
}

std::vector<double> errors(const Prompts& prompts, const Separate& state) {
  std::vector<double> found;
  for (std::size_t i = 0; i < prompts.mus.size(); ++i)
    found.push_back(static_cast<double>(prompts.mus.size()) * prompts.scales[i] * state.a * state.b[i] -
                    target(prompts, i));
  return found;
}

Parts parts_of(const Prompts& prompts, const Separate& state) {
  Parts found;
  for (const double mu : prompts.mus) found.length = std::hypot(found.length, mu);
  if (found.length > 0)
    for (std::size_t i = 0; i < state.b.size(); ++i) found.along += state.b[i] * prompts.mus[i] / found.length;
  for (std::size_t i = 0; i < state.b.size(); ++i)
    found.beside =
        std::hypot(found.beside, state.b[i] - (found.length > 0 ? found.along * prompts.mus[i] / found.length : 0));
  found.length /= static_cast<double>(prompts.mus.size());
  return found;
}

double loss_of(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += e * e;
  return sum / (2 * static_cast<double>(errors.size()));
}

} // namespace noether::maps
