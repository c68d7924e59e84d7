// Python pickles as plain data: they are programs, and here none of them runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::formats {

/// What one step of a pickle makes. Lists, tuples and dictionaries are what they are; what would be a call of a Python
/// function stays a description of that call, for the reader to understand or to refuse.
struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, bytes, list, tuple, dictionary, global, call, persistent };
  Kind kind = Kind::none;
  std::int64_t integer = 0; ///< of integer, and 0 or 1 of boolean
  double real = 0;
  std::string text{}; ///< of text and bytes; of a global "module.name"
  /// The elements of a list or tuple; keys and values of a dictionary, in turn; the function and the tuple of arguments
  /// of a call; the identity of a persistent object. A value may be in several places, and even in itself.
  std::vector<const PickleValue*> items{};
  bool record = false; ///< a dictionary that was an object's state
};

/// Values, as long as this lives, and the outermost of them.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

/// How the functions and classes that a pickle names are taken.
enum class PickleName {
  refused,
  value,  ///< called with arguments, or an argument itself
  record, ///< a class of nothing but fields: its instances become dictionaries
};

/// Reads protocols 2 to 5. OrderedDict is known, and becomes a dictionary; `known` decides on all other names.
/// Throws Error "NAME: ..." for a name that is refused, an operation beyond plain data, and damage; memory grows with
/// the bytes at hand. Source of the operations: CPython's Lib/pickletools.py.
Pickle parse_pickle(std::string_view bytes, const std::string& name,
                    const std::function<PickleName(std::string_view global)>& known);

} // namespace noether::formats
