// What torch.save writes: a zip archive of a pickle and the numbers that it speaks of.
#pragma once

#include "formats/tensors.h"

#include <nlohmann/json.hpp>

namespace noether::formats {

/// Whether a file that begins so may be one (PyTorch 1.6 or later).
bool begins_torch_archive(std::string_view bytes);

struct TorchArchive {
  /// Views into the file; a tensor in nested dictionaries and lists is named by their keys, "model.layers.0.weight".
  Tensors tensors;
  /// What lies beside the tensors, nested as it is there: numbers, strings, lists, dictionaries.
  nlohmann::json settings;
};

/// `bytes`: the whole file. No code in it runs: tensors, parameters, dictionaries, lists, numbers and strings are
/// known, and the fields of GPTConfig, a class of the symmetry-breaking authors' programs. Places, sizes and strides
/// are compared with the bytes at hand. Throws Error "NAME: ..." for damage, and for anything else by its name: "x.pt:
/// asks for os.system, which is neither a tensor nor plain data: refused". Source: torch/serialization.py and
/// torch/_utils.py of PyTorch 2.11, for the names and the order of arguments.
TorchArchive parse_torch_archive(std::string_view bytes, const std::string& name);

} // namespace noether::formats
