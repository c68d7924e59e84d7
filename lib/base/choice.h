// A few words of which one is to be chosen: an enumeration's values by their names in files and on command lines.
#pragma once

#include "base/error.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace noether {

/// The value whose number is the place of `name` in `names`.
/// Throws UsageError with a suggestion: "activation: expected gelu, relu, found rlu (did you mean relu?)".
template <class Choice, std::size_t N>
Choice choice_of(std::string_view name, const std::array<const char*, N>& names, std::string_view what) {
  for (std::size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<Choice>(i);
  throw UsageError("{}: expected {}, found {}{}", what, fmt::join(names, ", "), name,
                   did_you_mean(name, {names.begin(), names.end()}));
}

} // namespace noether
