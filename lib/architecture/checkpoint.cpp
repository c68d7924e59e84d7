// Checkpoints: made, read and written. Parameters go between arena and file without a copy in between.
#include "architecture/checkpoint.h"

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"

#include <algorithm>
#include <set>

namespace noether::architecture {
namespace {

constexpr const char* kParameters = "/parameters/";
constexpr const char* kOptimizer = "/optimizer/";
constexpr const char* kHistory = "/history/";
constexpr const char* kReferences = "/references/";

store::Shape file_shape(const Parameter& parameter) { return {parameter.shape.begin(), parameter.shape.end()}; }

/// Parameters may come in other types, as other programs write them; state that was rounded would be another state.
void expect_float32(const store::FileReader& file, const std::string& path) {
  const std::optional<store::Type> type = file.info(path).type;
  if (type != store::Type::f32)
    throw Error("{}: {}: expected float32, found {}", file.name(), path, type ? name_of(*type) : "something else");
}

/// Reads the arrays of `layout` below `prefix` into an arena; every one must be there, of its shape, and none besides.
/// holders: takes those that are there, and says which.
Arena read_arena(const store::FileReader& file, const std::string& prefix, const std::vector<Parameter>& layout,
                 std::vector<bool>* holders = nullptr) {
  std::set<std::string> unknown;
  for (const std::string& path : file.datasets(prefix.substr(0, prefix.size() - 1))) unknown.insert(path);
  Arena arena(layout.back().offset + layout.back().count);
  for (const Parameter& parameter : layout) {
    const std::string path = prefix + parameter.name;
    const bool there = unknown.erase(path) > 0;
    if (holders != nullptr) {
      holders->push_back(there);
      if (!there) continue;
    }
    if (!there) throw Error("{}: no dataset {}", file.name(), path);
    const store::Shape found = file.info(path).shape;
    if (found != file_shape(parameter))
      throw Error("{}: {}: expected shape [{}], found [{}]", file.name(), path, fmt::join(parameter.shape, ", "),
                  fmt::join(found, ", "));
    if (holders != nullptr) expect_float32(file, path);
    file.read(path, store::Type::f32, arena.data() + parameter.offset, static_cast<std::uint64_t>(parameter.count));
  }
  if (!unknown.empty()) throw Error("{}: {}: not a parameter of this configuration", file.name(), *unknown.begin());
  return arena;
}

void put_arena(store::FileWriter& file, const std::string& prefix, const std::vector<Parameter>& layout,
               const Arena& arena, const std::vector<bool>& holders = {}) {
  for (std::size_t i = 0; i < layout.size(); ++i)
    if (holders.empty() || holders[i])
      file.array(prefix + layout[i].name, store::Type::f32, file_shape(layout[i]), arena.data() + layout[i].offset);
}

/// The side that a path below /optimizer/ speaks of: 0 left, 1 right.
std::optional<std::size_t> side_of(std::string_view name) {
  return name == "left"    ? std::optional<std::size_t>(0)
         : name == "right" ? std::optional<std::size_t>(1)
                           : std::nullopt;
}

/// [n + 1, n] numbers, n by the matrix that `name`, "left/layers/...", is of; a matrix of several has its number last.
store::Shape side_shape(const std::string& name, const std::vector<Parameter>& layout) {
  const std::size_t slash = name.find('/');
  const std::string matrix = name.substr(slash + 1);
  const auto found = std::find_if(layout.begin(), layout.end(), [&](const Parameter& p) {
    if (p.matrices == 1) return matrix == p.name;
    for (std::int64_t m = 0; m < p.matrices; ++m)
      if (matrix == fmt::format("{}/{}", p.name, m)) return true;
    return false;
  });
  const std::int64_t n = found == layout.end() ? 0 : found->matrix_shape()[*side_of(name.substr(0, slash))];
  return {static_cast<std::uint64_t>(n == 0 ? 0 : n + 1), static_cast<std::uint64_t>(n)};
}

Arena read_side(const store::FileReader& file, const std::string& name, const std::vector<Parameter>& layout) {
  const std::string path = kOptimizer + name;
  const store::Shape expected = side_shape(name, layout), found = file.info(path).shape;
  if (expected[1] == 0) throw Error("{}: {}: not a matrix of this configuration", file.name(), path);
  if (found != expected)
    throw Error("{}: {}: expected shape [{}], found [{}]", file.name(), path, fmt::join(expected, ", "),
                fmt::join(found, ", "));
  expect_float32(file, path);
  Arena side(static_cast<std::int64_t>(expected[0] * expected[1]));
  file.read(path, store::Type::f32, side.data(), expected[0] * expected[1]);
  return side;
}

} // namespace

Checkpoint initialise(const Config& config, std::uint64_t seed, int threads) {
  Checkpoint checkpoint;
  checkpoint.config = config;
  checkpoint.layout = parameters(config);
  const Parameter& last = checkpoint.layout.back();
  checkpoint.parameters = Arena(last.offset + last.count);

  struct Piece {
    std::size_t parameter;
    std::int64_t begin, end;
  };
  constexpr std::int64_t kPiece = 1 << 16;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < checkpoint.layout.size(); ++i)
    for (std::int64_t begin = 0; begin < checkpoint.layout[i].count; begin += kPiece)
      pieces.push_back({i, begin, std::min(begin + kPiece, checkpoint.layout[i].count)});
  parallel_for(static_cast<std::int64_t>(pieces.size()), threads, [&](std::int64_t index) {
    const Piece& piece = pieces[static_cast<std::size_t>(index)];
    const Parameter& parameter = checkpoint.layout[piece.parameter];
    float* out = checkpoint.parameters.data() + parameter.offset;
    const Initial& initial = parameter.initial;
    if (initial.components) {
      const Random random(seed, Purpose::kInitialise, 0, static_cast<std::uint32_t>(piece.parameter));
      for (std::int64_t i = piece.begin; i < piece.end; ++i) {
        const std::int64_t head = i / config.head_width, component = i % config.head_width;
        out[i] = static_cast<float>(initial.components->mean(component, config.head_width, head) +
                                    initial.components->deviation(component, config.head_width, head) *
                                        random.normal(static_cast<std::uint64_t>(i)));
      }
    } else if (initial.deviation == 0)
      std::fill(out + piece.begin, out + piece.end, static_cast<float>(initial.mean));
    else
      Random(seed, Purpose::kInitialise, 0, static_cast<std::uint32_t>(piece.parameter))
          .fill_normal(out + piece.begin, static_cast<std::uint64_t>(piece.begin),
                       static_cast<std::uint64_t>(piece.end - piece.begin), initial.mean, initial.deviation);
  });
  return checkpoint;
}

Checkpoint read_checkpoint(const store::FileReader& file, bool with_optimizer) {
  file.expect(store::kCheckpointFile);
  Checkpoint checkpoint;
  checkpoint.name = file.name();
  checkpoint.digest = file.digest();
  checkpoint.provenance = file.provenance();
  checkpoint.config = config_from_json(file.text("/configuration"), file.name());
  checkpoint.layout = parameters(checkpoint.config);
  checkpoint.parameters = read_arena(file, kParameters, checkpoint.layout);
  if (file.has("/tokenizer")) checkpoint.tokenizer = text::read_tokenizer(file);
  if (checkpoint.tokenizer && checkpoint.tokenizer->vocab_size() > checkpoint.config.vocab_size)
    throw Error("{}: its tokenizer has {} tokens, beyond the model's vocabulary of {}", file.name(),
                checkpoint.tokenizer->vocab_size(), checkpoint.config.vocab_size);

  if (file.has("/training")) {
    checkpoint.training.state = nlohmann::ordered_json::parse(file.text("/training"), nullptr, false);
    if (!checkpoint.training.state.is_object()) throw Error("{}: /training: expected a JSON object", file.name());
  }
  if (with_optimizer && file.has("/optimizer")) {
    std::set<std::string> names; // /optimizer/NAME/layers/...
    const std::string prefix = kOptimizer;
    for (const std::string& path : file.datasets("/optimizer")) {
      const std::string name = path.substr(prefix.size()), state = name.substr(0, name.find('/'));
      if (side_of(state))
        checkpoint.training.sides.emplace(name, read_side(file, name, checkpoint.layout));
      else
        names.insert(state);
    }
    for (const std::string& name : names)
      checkpoint.training.optimizer.emplace(
          name, read_arena(file, prefix + name + "/", checkpoint.layout, &checkpoint.training.holders[name]));
  }
  const auto columns = [&](const std::string& prefix, auto& into) {
    const std::string group = prefix.substr(0, prefix.size() - 1);
    if (file.has(group))
      for (const std::string& path : file.datasets(group)) into[path.substr(prefix.size())] = file.read<double>(path);
  };
  columns(kHistory, checkpoint.training.history);
  columns(kReferences, checkpoint.training.references);
  return checkpoint;
}

store::FileWriter to_file(const Checkpoint& checkpoint, bool with_optimizer) {
  store::FileWriter file(store::kCheckpointFile);
  file.text("/configuration", to_json(checkpoint.config).dump());
  put_arena(file, kParameters, checkpoint.layout, checkpoint.parameters);
  if (checkpoint.tokenizer) text::put(file, *checkpoint.tokenizer);
  if (!checkpoint.training.state.is_null()) file.text("/training", checkpoint.training.state.dump());
  if (with_optimizer) {
    const auto& holders = checkpoint.training.holders;
    for (const auto& [name, arena] : checkpoint.training.optimizer)
      put_arena(file, kOptimizer + name + "/", checkpoint.layout, arena,
                holders.contains(name) ? holders.at(name) : std::vector<bool>());
    for (const auto& [name, side] : checkpoint.training.sides)
      file.array(kOptimizer + name, store::Type::f32, side_shape(name, checkpoint.layout), side.data());
  }
  for (const auto& [name, column] : checkpoint.training.history) file.array(kHistory + name, column);
  for (const auto& [name, values] : checkpoint.training.references) file.array(kReferences + name, values);
  return file;
}

} // namespace noether::architecture
