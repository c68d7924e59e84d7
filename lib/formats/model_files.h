// Models in the forms that they are published in.
#pragma once

#include "architecture/checkpoint.h"

#include <optional>

namespace noether::formats {

/// Reads a model from a path, told apart by content:
///
/// - a checkpoint of ours, plain or in zstd ("-": from stdin; a FIFO is taken to hold one too);
/// - a safetensors file, or what torch.save writes, with config.json (Hugging Face) or params.json (Meta) beside it
///   where the layout needs one: see from_foreign();
/// - an index of several such files (model.safetensors.index.json), which lie beside it;
/// - a folder of them: model.safetensors, pytorch_model.bin, consolidated.00.pth, or an index.
///
/// heads: how many attention heads there are, where the file does not say. The checkpoint's digest is that of its
/// content, whatever file it came from. Throws Error, for what is none of these too.
architecture::Checkpoint load_model(const std::string& path, std::optional<std::int64_t> heads);

} // namespace noether::formats
