// Prompts of in-context regression: pairs (x, y), and a query whose target is to be predicted from them.
#pragma once

#include "store/reader.h"

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace noether::regression {

struct Prompts {
  std::int64_t count = 0, pairs = 0, dimension = 0; ///< prompts, pairs of each, components of an x
  std::vector<double> x{};                          ///< [count, pairs + 1, dimension]: of the pairs, then the query
  std::vector<double> y{}; ///< [count, pairs + 1]: of the pairs, then the query's target, which the model does not see

  std::vector<std::string> provenance{}; ///< JSON records, oldest first; empty when fresh
  std::string digest{}, name{};          ///< of the file that they were read from; "" when fresh
};

struct PromptOptions {
  std::int64_t count = 1, pairs = 16, dimension = 4;
  double noise = 0; ///< standard deviation of what is added to every y
  std::uint64_t seed = 0;
};
/// Each prompt has a task of its own, t ~ N(0, 1), and y = t x + noise with x ~ N(0, 1), component by component.
Prompts draw_prompts(const PromptOptions& options);

/// From text: a pair a line, the components of x and then y, with blanks or commas between them; the last line of a
/// prompt is the query with its target, and an empty line is between two prompts. All prompts are of the same size.
/// Throws Error that names the line.
Prompts parse_prompts(std::istream& text, const std::string& name);

/// Throws Error when the file holds none, or their shapes do not fit.
Prompts read_prompts(const store::FileReader& file);
/// A file of kind tensors, which borrows them until it is sent.
store::FileWriter to_file(const Prompts& prompts);

} // namespace noether::regression
