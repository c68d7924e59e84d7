// Quantities that are recorded over a run: what symmetries conserve, norms, and attention's logits.
#pragma once

#include "base/table.h"
#include "models/model.h"
#include "training/batch.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::training {

/// What may be recorded; a bit each.
///
/// | name | a row for each | quantities |
/// |---|---|---|
/// | momentum | layer and key head | L_QK, L_VO: norms of the angular momenta (models/conserved.h) |
/// | balance | layer and key head | balance_QK, balance_VO, and drift_QK, drift_VO since the run's beginning |
/// | norms | layer, and the whole model | parameter_norm, gradient_norm, momentum_norm |
/// | logits | layer | largest_logit of attention, in the batch's first kLogitRows sequences |
enum class Record : unsigned { momentum = 1, balance = 2, norms = 4, logits = 8 };
inline constexpr std::int64_t kLogitRows = 4;

std::vector<std::string> record_names();
/// "momentum,norms" as bits. Throws UsageError with a suggestion.
unsigned records_of(const std::string& list);
std::vector<Column> record_columns(); ///< step, quantity, layer, head, value

/// Keeps in the checkpoint, unless they are there already, the matrices that drift is measured from.
/// Throws Error when those are not of this model.
void keep_references(unsigned what, architecture::Checkpoint& checkpoint);

/// Hands the rows of what is to be recorded to `out`, as record_columns() say. To be called after a step, whose
/// gradients, batch and biases these are.
void record(unsigned what, std::uint64_t step, architecture::Checkpoint& checkpoint, const models::Model& model,
            architecture::Arena& gradients, const Batch& batch, const models::StepBiases& biases,
            const std::function<void(const std::vector<Cell>&)>& out);

} // namespace noether::training
