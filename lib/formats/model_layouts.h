// The models of other programs as checkpoints of ours: whose names are whose, and what turns where.
#pragma once

#include "architecture/checkpoint.h"
#include "formats/tensors.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace noether::formats {

/// What a model's files hold.
struct ForeignModel {
  std::string name; ///< for messages
  Tensors tensors;
  nlohmann::json inside = nlohmann::json::object();   ///< what an archive says beside its tensors
  nlohmann::json settings = nlohmann::json::object(); ///< config.json or params.json
  std::string settings_name{};                        ///< "gpt2/config.json"; "" when there is no such file
};

/// The checkpoint, with its parameters, without a tokenizer. The layout is told by the tensors' names:
///
/// - GPT-2 of Hugging Face (h.0.attn.c_attn.weight): its matrices are [in, out];
/// - Llama of Hugging Face (layers.0.self_attn.q_proj.weight);
/// - Llama of Meta (layers.0.attention.wq.weight): the rows of W_Q and W_K that rotate together are neighbours, and go
///   half a head apart, where ours and Hugging Face's are;
/// - the symmetry-breaking authors' (h.0.sa.c_attn.weight), whose archives need not say how many heads there are.
///
/// heads: what the user says, where the file does not.
/// Every tensor must have its place, except buffers that are not weights (masks, biases as they were last drawn).
/// Throws Error for a missing or unknown tensor, another shape, and a setting that would compute something else.
architecture::Checkpoint from_foreign(const ForeignModel& model, std::optional<std::int64_t> heads);

} // namespace noether::formats
