// How a file came to be: one JSON record a step, oldest first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace noether::store {

/// One record: {"tool","version","arguments":[...],"seed","time","inputs":[{"kind","digest"}]}. No host and no user.
/// Time is UTC, ISO 8601, and the only field that differs between equal runs; SOURCE_DATE_EPOCH sets it.
struct ProvenanceRecord {
  std::string tool;                   ///< "init"
  std::vector<std::string> arguments; ///< as given, not joined: a joined string loses its quoting
  std::optional<std::uint64_t> seed;
  struct Input {
    std::string kind, digest;
  };
  std::vector<Input> inputs;
};
std::string to_json(const ProvenanceRecord& record);

/// The union of the inputs' records in their order, each once (a merge makes a graph, not a chain), and then `record`.
std::vector<std::string> extend_provenance(const std::vector<std::vector<std::string>>& inputs,
                                           const ProvenanceRecord& record);

} // namespace noether::store
