#include "regression/prompts.h"

#include "base/error.h"
#include "base/number.h"
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace noether::regression {
namespace {

constexpr const char* kX = "/prompts/x";
constexpr const char* kY = "/prompts/y";
/// Layers of the draws of a prompt.
enum : std::uint32_t { kTask, kInputs, kNoise };

std::vector<double> numbers_of(const std::string& line, const std::string& name, std::int64_t number) {
  std::string words = line;
  std::replace(words.begin(), words.end(), ',', ' ');
  std::istringstream stream(words);
  std::vector<double> values;
  for (std::string word; stream >> word;) {
    const auto value = parse_real(word);
    if (!value) throw Error("{}: line {}: expected numbers, found {}", name, number, word);
    values.push_back(*value);
  }
  return values;
}

} // namespace

Prompts draw_prompts(const PromptOptions& options) {
  Prompts prompts{.count = options.count, .pairs = options.pairs, .dimension = options.dimension};
  for (std::int64_t p = 0; p < options.count; ++p) {
    const auto stream = [&](std::uint32_t layer) {
      return Random(options.seed, Purpose::kPrompt, static_cast<std::uint64_t>(p), layer);
    };
    const Random task = stream(kTask), inputs = stream(kInputs), noise = stream(kNoise);
    std::uint64_t drawn = 0;
    for (std::int64_t i = 0; i <= options.pairs; ++i) {
      double y = options.noise == 0 ? 0 : options.noise * noise.normal(static_cast<std::uint64_t>(i));
      for (std::int64_t j = 0; j < options.dimension; ++j) {
        prompts.x.push_back(inputs.normal(drawn++));
        y += task.normal(static_cast<std::uint64_t>(j)) * prompts.x.back();
      }
      prompts.y.push_back(y);
    }
  }
  return prompts;
}

Prompts parse_prompts(std::istream& text, const std::string& name) {
  Prompts prompts;
  std::int64_t number = 0, lines = 0; // of the file, and of the prompt so far
  const auto finish = [&] {
    if (lines == 0) return;
    if (lines == 1)
      throw Error("{}: prompt {} has one line: expected a pair or more, and then its query", name, prompts.count + 1);
    if (prompts.count > 0 && lines != prompts.pairs + 1)
      throw Error("{}: prompt {} has {} pairs, and the first has {}", name, prompts.count + 1, lines - 1,
                  prompts.pairs);
    prompts.pairs = lines - 1;
    ++prompts.count;
    lines = 0;
  };
  for (std::string line; std::getline(text, line);) {
    const std::vector<double> values = numbers_of(line, name, ++number);
    if (values.empty()) {
      finish();
      continue;
    }
    if (values.size() < 2)
      throw Error("{}: line {}: expected the components of x and then y, found one number", name, number);
    const auto dimension = static_cast<std::int64_t>(values.size()) - 1;
    if (prompts.dimension > 0 && dimension != prompts.dimension)
      throw Error("{}: line {}: expected {} numbers, found {}", name, number, prompts.dimension + 1, values.size());
    prompts.dimension = dimension;
    prompts.x.insert(prompts.x.end(), values.begin(), values.end() - 1);
    prompts.y.push_back(values.back());
    ++lines;
  }
  finish();
  if (prompts.count == 0) throw Error("{}: no prompts in it", name);
  return prompts;
}

Prompts read_prompts(const store::FileReader& file) {
  file.expect(store::kTensorsFile);
  for (const char* path : {kX, kY})
    if (!file.has(path))
      throw Error("{}: no dataset {}: expected prompts, as noether bifurcate prompts makes them", file.name(), path);
  const store::Shape x = file.info(kX).shape, y = file.info(kY).shape;
  if (x.size() != 3 || y.size() != 2 || x[0] != y[0] || x[1] != y[1] || x[0] < 1 || x[1] < 2 || x[2] < 1)
    throw Error("{}: expected {} of shape [prompts, pairs + 1, dimension] and {} of [prompts, pairs + 1], found [{}] "
                "and [{}]",
                file.name(), kX, kY, fmt::join(x, ", "), fmt::join(y, ", "));
  Prompts prompts{.count = static_cast<std::int64_t>(x[0]),
                  .pairs = static_cast<std::int64_t>(x[1]) - 1,
                  .dimension = static_cast<std::int64_t>(x[2]),
                  .x = file.read<double>(kX),
                  .y = file.read<double>(kY),
                  .provenance = file.provenance(),
                  .digest = file.digest(),
                  .name = file.name()};
  for (const auto& [path, values] : {std::pair{kX, &prompts.x}, std::pair{kY, &prompts.y}})
    if (!std::all_of(values->begin(), values->end(), [](double value) { return std::isfinite(value); }))
      throw Error("{}: {}: not all of it is finite", file.name(), path);
  return prompts;
}

store::FileWriter to_file(const Prompts& prompts) {
  store::FileWriter file(store::kTensorsFile);
  const auto count = static_cast<std::uint64_t>(prompts.count), tokens = static_cast<std::uint64_t>(prompts.pairs + 1);
  file.array(kX, {count, tokens, static_cast<std::uint64_t>(prompts.dimension)}, std::span<const double>(prompts.x));
  file.array(kY, {count, tokens}, std::span<const double>(prompts.y));
  return file;
}

} // namespace noether::regression
