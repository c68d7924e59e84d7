// safetensors: a JSON header, then the numbers.
#pragma once

#include "formats/tensors.h"

namespace noether::formats {

/// Whether a file that begins so may be one: eight bytes of length, then a JSON object.
bool begins_safetensors(std::string_view bytes);

/// Its tensors, as views into `bytes`, the whole file. Every offset and shape is compared with the bytes at hand: none
/// may reach beyond them, overlap, or leave a gap. Throws Error "NAME: ..." otherwise, and for a type that Tensor does
/// not know. What __metadata__ says is not read.
/// Source: the format's own description, github.com/huggingface/safetensors.
Tensors parse_safetensors(std::string_view bytes, const std::string& name);

} // namespace noether::formats
