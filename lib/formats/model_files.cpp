// Opens the files of a model, and leaves what they say to their readers.
#include "formats/model_files.h"

#include "base/error.h"
#include "formats/model_layouts.h"
#include "formats/safetensors.h"
#include "formats/torch_archive.h"

#include <array>
#include <deque>
#include <filesystem>

namespace noether::formats {
namespace {

namespace fs = std::filesystem;

/// The model's file in a folder, or the index of several.
fs::path file_in(const fs::path& folder) {
  if (fs::exists(folder / "consolidated.01.pth"))
    throw Error("{}: matrices cut into parts for several processors, which are not put together", folder.string());
  constexpr std::array kNames{"model.safetensors", "pytorch_model.bin", "consolidated.00.pth",
                              "model.safetensors.index.json", "pytorch_model.bin.index.json"};
  for (const char* name : kNames)
    if (fs::exists(folder / name)) return folder / name;
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

/// Adds what a file holds; false when it is no model of another program's.
bool add_file(ForeignModel& model, std::string_view bytes, const std::string& name) {
  if (begins_torch_archive(bytes)) {
    TorchArchive archive = parse_torch_archive(bytes, name);
    model.tensors.merge(archive.tensors);
    if (archive.settings.is_object()) model.inside = std::move(archive.settings);
  } else if (begins_safetensors(bytes)) {
    Tensors tensors = parse_safetensors(bytes, name);
    model.tensors.merge(tensors);
  } else if (bytes.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46")) {
    throw Error("{}: saved by a PyTorch before 1.6; load and save it with a newer one", name);
  } else {
    return false;
  }
  return true;
}

/// Adds the files of an index, {"weight_map": {tensor: file beside it}}, which must say what each holds.
void add_files(ForeignModel& model, const fs::path& index, std::deque<MappedFile>& files) {
  const nlohmann::json json = nlohmann::json::parse(MappedFile(index.string()).bytes(), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object())
    throw Error("{}: expected a JSON object with a weight_map, of a file for each tensor", index.string());
  std::map<std::string, std::vector<std::string>> held; // by file
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name == ".." || name == "." || name.find('/') != std::string::npos)
      throw Error("{}: {}: expected the name of a file in this folder, found {}", index.string(), shown(tensor),
                  shown(file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    held[name].push_back(tensor);
  }
  for (const auto& [name, tensors] : held) {
    const std::string path = (index.parent_path() / name).string();
    files.emplace_back(path);
    ForeignModel part{.name = path, .tensors = {}};
    if (!add_file(part, files.back().bytes(), path)) throw Error("{}: neither safetensors nor a PyTorch archive", path);
    for (const std::string& tensor : tensors)
      if (!part.tensors.contains(tensor))
        throw Error("{}: no tensor {}, which {} says is there", path, shown(tensor), index.filename().string());
    if (part.tensors.size() != tensors.size())
      throw Error("{}: {} tensors, of which {} names {}", path, part.tensors.size(), index.filename().string(),
                  tensors.size());
    model.tensors.merge(part.tensors);
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

  ForeignModel model{.name = file.string(), .tensors = {}};
  std::deque<MappedFile> files; // tensors are views into these
  if (file.extension() == ".json") {
    add_files(model, file, files);
  } else {
    files.emplace_back(file.string());
    if (!add_file(model, files.back().bytes(), model.name)) return ours();
  }
  read_settings(model, file.parent_path());
  return from_foreign(model, heads);
}

} // namespace noether::formats
