// The directions in which a model's queries are pushed: what its keys are compared with.
#pragma once

#include "models/model.h"
#include "text/token_file.h"

#include <string>

namespace noether::alignment {

/// One for each layer and query head: [layers, heads, head_width] float32.
///
/// The means of the query biases, drawn or learned. Throws Error for a model without any.
at::Tensor bias_directions(const architecture::Checkpoint& checkpoint, const models::Model& model);

/// The mean query of each head over the first `limit` tokens, before rotation and without the symmetry-breaking bias:
/// a direction for models that have no bias. Throws Error as read_windows() does.
at::Tensor mean_queries(const models::Model& model, const text::TokenFile& tokens, std::int64_t limit);

/// Numbers from a text file: head_width of them for all heads, heads * head_width for each layer, or one direction for
/// each head of each layer, the last index running fastest. Throws Error naming the file and these counts.
at::Tensor read_directions(const std::string& path, const architecture::Config& config);

/// Throws Error when a direction has no length: nothing can be aligned with it.
void check_directions(const at::Tensor& directions, const std::string& name);

/// Calls use(ids [1, T] int64) for each window of the model's context in the first `limit` tokens (0: all). Throws
/// Error for tokens that the model does not take.
void for_each_window(const models::Model& model, const text::TokenFile& tokens, std::int64_t limit,
                     const std::function<void(const at::Tensor& ids)>& use);

} // namespace noether::alignment
