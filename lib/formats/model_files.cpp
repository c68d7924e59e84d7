// Opens the files of a model, and leaves what they say to their readers.
#include "formats/model_files.h"

#include "base/error.h"
#include "formats/model_layouts.h"
#include "formats/safetensors.h"
#include "formats/torch_archive.h"

#include <array>
#include <filesystem>

namespace noether::formats {
namespace {

namespace fs = std::filesystem;

fs::path file_in(const fs::path& folder) {
  constexpr std::array kNames{"model.safetensors", "pytorch_model.bin", "consolidated.00.pth"};
  for (const char* name : kNames)
    if (fs::exists(folder / name)) return folder / name;
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json"})
    if (fs::exists(folder / name))
      throw Error("{}: a model in several files, which is not supported; save it as one", folder.string());
  throw Error("{}: a folder without {}", folder.string(), fmt::join(kNames, ", "));
}

/// Reads the first of these that lies beside the file, if any does.
void read_settings(ForeignModel& model, const fs::path& folder) {
  for (const char* name : {"config.json", "params.json"}) {
    const std::string path = (folder / name).string();
    if (!fs::exists(path)) continue;
    model.settings_name = path;
    model.settings = nlohmann::json::parse(MappedFile(path).bytes(), nullptr, false);
    if (!model.settings.is_object()) throw Error("{}: expected a JSON object", path);
    return;
  }
}

} // namespace

architecture::Checkpoint load_model(const std::string& path, std::optional<std::int64_t> heads) {
  std::error_code none;
  const fs::path file = fs::is_directory(path, none) ? file_in(path) : fs::path(path);
  const auto ours = [&] {
    return architecture::read_checkpoint(store::open_one(file.string(), store::kCheckpointFile), false);
  };
  if (path == "-" || !fs::is_regular_file(file, none) || fs::file_size(file, none) == 0) return ours();

  const MappedFile mapped(file.string());
  ForeignModel model{.name = file.string(), .tensors = {}};
  if (begins_torch_archive(mapped.bytes())) {
    TorchArchive archive = parse_torch_archive(mapped.bytes(), model.name);
    model.tensors = std::move(archive.tensors);
    if (archive.settings.is_object()) model.inside = std::move(archive.settings);
  } else if (begins_safetensors(mapped.bytes())) {
    model.tensors = parse_safetensors(mapped.bytes(), model.name);
  } else if (mapped.bytes().starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46")) {
    throw Error("{}: saved by a PyTorch before 1.6; load and save it with a newer one", model.name);
  } else {
    return ours();
  }
  read_settings(model, file.parent_path());
  return from_foreign(model, heads);
}

} // namespace noether::formats
