#include "training/settings.h"

#include "base/error.h"
#include "base/number.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

namespace noether::training {
namespace {

using optimizers::ScheduleKind;

constexpr double kAny = std::numeric_limits<double>::max();
constexpr double kCounts = 1e15; // exact in a double
constexpr double kMost = 1e9;    // of what is counted in memory

std::vector<std::string> decays() { return {"all", "matrices"}; }
std::vector<std::string> orders() { return {"random", "shuffle"}; }
std::vector<std::string> losses() { return {"all", "completion"}; }
std::vector<std::string> first_steps() { return {"skip", "apply"}; }
std::vector<std::string> precisions() { return {"f32", "bf16", "auto"}; }

/// Where each hyperparameter is kept.
double* real_of(optimizers::Hyperparameters& h, std::string_view name) {
  const std::pair<std::string_view, double*> places[] = {{"lr", &h.lr},
                                                         {"weight-decay", &h.weight_decay},
                                                         {"clip", &h.clip},
                                                         {"beta1", &h.beta1},
                                                         {"beta2", &h.beta2},
                                                         {"epsilon", &h.epsilon},
                                                         {"momentum", &h.momentum},
                                                         {"eta", &h.eta},
                                                         {"f0", &h.f0},
                                                         {"nu", &h.nu},
                                                         {"s", &h.s},
                                                         {"delta-energy", &h.delta_energy}};
  for (const auto& [key, place] : places)
    if (key == name) return place;
  return nullptr;
}
bool* flag_of(optimizers::Hyperparameters& h, std::string_view name) {
  return name == "nesterov"                  ? &h.nesterov
         : name == "per-tensor"              ? &h.per_tensor
         : name == "precondition-vocabulary" ? &h.precondition_vocabulary
                                             : nullptr;
}
std::int64_t* count_of(optimizers::Hyperparameters& h, std::string_view name) {
  return name == "precondition-every"   ? &h.precondition_every
         : name == "precondition-limit" ? &h.precondition_limit
                                        : nullptr;
}

/// The value that a hyperparameter has where nothing was said; null when `name` is something else.
Json default_of(const optimizers::Optimizer& optimizer, std::string_view name) {
  optimizers::Hyperparameters h = optimizer.defaults;
  if (const double* real = real_of(h, name)) return *real;
  if (const bool* flag = flag_of(h, name)) return *flag;
  if (const std::int64_t* count = count_of(h, name)) return *count;
  if (name == "first-step") return "skip";
  return {};
}

bool fits(const Setting& setting, double value) {
  return value >= setting.least && value <= setting.most && !(setting.open && value == setting.least);
}

bool belongs_to_an_optimizer(std::string_view name) {
  return std::any_of(optimizers::all_optimizers().begin(), optimizers::all_optimizers().end(), [&](const auto& row) {
    return std::find(row.options.begin(), row.options.end(), name) != row.options.end();
  });
}

/// Settings that a group of parameters may have, besides the optimizer's own.
constexpr std::array<std::string_view, 4> kOfGroups{"optimizer", "lr", "weight-decay", "decay"};

/// "PATTERN:NAME=VALUE,NAME=VALUE" as an object of these, the pattern under "parameters".
Json parse_group(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size())
    throw UsageError("--group: expected PATTERN:NAME=VALUE,..., found {}", text);
  Json group{{"parameters", text.substr(0, colon)}};
  std::istringstream pairs(text.substr(colon + 1));
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const std::size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    std::vector<std::string> names;
    const Setting* setting = nullptr;
    for (const Setting& row : all_settings()) {
      if (std::find(kOfGroups.begin(), kOfGroups.end(), row.name) == kOfGroups.end() &&
          !belongs_to_an_optimizer(row.name))
        continue;
      names.emplace_back(row.name);
      if (row.name == name) setting = &row;
    }
    if (setting == nullptr || equals == std::string::npos)
      throw UsageError("--group {}: expected NAME=VALUE, found {}{}", text, pair,
                       setting == nullptr ? did_you_mean(name, names) : "");
    const std::string value = pair.substr(equals + 1);
    if (!setting->word.empty() && value == setting->word)
      throw UsageError("--group {}: {}={} is for a whole run", text, name, value);
    if (setting->kind == SettingKind::flag && value != "true" && value != "false")
      throw UsageError("--group {}: {}: expected true or false, found {}", text, name, value);
    group[name] = parse_setting(*setting, value);
  }
  return group;
}

/// Throws UsageError for a setting of a group that has no effect, and where ECD would move several groups.
void check_groups(const Json& groups, const std::string& optimizer) {
  const auto descends = [](std::string_view name) { // at a distance from F0, which is one for the whole run
    const auto& options = optimizers::optimizer_of(name).options;
    return std::find(options.begin(), options.end(), "f0") != options.end();
  };
  int descending = descends(optimizer) ? 1 : 0;
  for (const Json& group : groups) {
    const auto pattern = group.at("parameters").get<std::string>();
    const std::string own = group.value("optimizer", optimizer);
    const auto& options = optimizers::optimizer_of(own).options;
    for (const auto& [name, value] : group.items())
      if (name != "parameters" && std::find(kOfGroups.begin(), kOfGroups.end(), name) == kOfGroups.end() &&
          std::find(options.begin(), options.end(), name) == options.end())
        throw UsageError("--group {}: {} has no effect with optimizer={}", pattern, name, own);
    if (descends(own) && ++descending > 1)
      throw UsageError("--group {}: {} moves all its parameters together; name another optimizer for one of its groups",
                       pattern, own);
  }
}

} // namespace

const std::vector<Setting>& all_settings() {
  using enum SettingKind;
  static const std::vector<Setting> table = {
      {.name = "optimizer",
       .kind = word,
       .help = "How parameters move",
       .shown_default = "adamw",
       .choices = optimizers::optimizer_names},
      {.name = "lr",
       .kind = real,
       .help = "Learning rate",
       .shown_default = "adamw 1e-4, sgdm 0.03, ecd 1, ecdsep 0.1, soap 3e-4",
       .most = kAny,
       .open = true},
      {.name = "weight-decay",
       .kind = real,
       .help = "Weight decay",
       .shown_default = "adamw, soap 0.01, others 0",
       .most = kAny},
      {.name = "decay", .kind = word, .help = "Which parameters decay", .shown_default = "all", .choices = decays},
      {.name = "beta1",
       .kind = real,
       .help = "adamw, soap: memory of the mean gradient",
       .shown_default = "adamw 0.9, soap 0.95",
       .most = 1},
      {.name = "beta2", .kind = real, .help = "adamw, soap: memory of its square", .shown_default = "0.95", .most = 1},
      {.name = "epsilon",
       .kind = real,
       .help = "adamw, soap: added to the root",
       .shown_default = "1e-8",
       .most = kAny,
       .open = true},
      {.name = "momentum", .kind = real, .help = "sgdm: memory of the gradient", .shown_default = "0.95", .most = 1},
      {.name = "nesterov",
       .kind = flag,
       .help = "sgdm: look ahead of the momentum (on unless --no-nesterov)",
       .shown_default = ""},
      {.name = "eta",
       .kind = real,
       .help = "ecd, ecdsep: concentration",
       .shown_default = "ecd 100, ecdsep 1.5",
       .most = kAny,
       .open = true},
      {.name = "f0",
       .kind = real,
       .help = "ecd, ecdsep: floor of the loss, below what can be reached; auto: it follows the loss down (ecd)",
       .shown_default = "2",
       .least = -kAny,
       .most = kAny,
       .word = "auto"},
      {.name = "f0-fraction",
       .kind = real,
       .help = "with --f0 auto: F0 is this part of the loss below it, and is set anew when the loss has come half way",
       .shown_default = "0.5",
       .most = 1,
       .open = true},
      {.name = "nu", .kind = real, .help = "ecd, ecdsep: size of random bounces", .shown_default = "0", .most = kAny},
      {.name = "s",
       .kind = real,
       .help = "ecdsep: part of the energy that does not move",
       .shown_default = "1",
       .most = kAny,
       .open = true},
      {.name = "delta-energy",
       .kind = real,
       .help = "ecdsep: square of the momentum that it begins with",
       .shown_default = "0",
       .most = kAny},
      {.name = "per-tensor",
       .kind = flag,
       .help = "ecd: dot products over each tensor, as in the published runs, and not over all parameters",
       .shown_default = ""},
      {.name = "precondition-every",
       .kind = count,
       .help = "soap: steps from one renewal of the bases to the next",
       .shown_default = "10",
       .least = 1,
       .most = kCounts},
      {.name = "precondition-limit",
       .kind = count,
       .help = "soap: sides of a matrix that are longer are left as they are",
       .shown_default = "10000",
       .least = 1,
       .most = kMost},
      {.name = "precondition-vocabulary",
       .kind = flag,
       .help = "soap: turn the side of an embedding that goes over tokens too, as the published program does",
       .shown_default = ""},
      {.name = "first-step",
       .kind = word,
       .help = "soap: the first step makes the bases alone, as published, or moves too",
       .shown_default = "skip",
       .choices = first_steps},
      {.name = "group",
       .kind = groups,
       .help = "Other settings for parameters whose names match: 'embedding/*:optimizer=adamw,lr=1e-3'; may be given "
               "again, and the first that matches counts",
       .shown_default = ""},
      {.name = "clip",
       .kind = real,
       .help = "Gradients longer than this are made this long; 0: never",
       .shown_default = "0",
       .most = kAny},
      {.name = "schedule",
       .kind = word,
       .help = "Learning rate over the run, after the warm-up",
       .shown_default = "constant",
       .choices = optimizers::schedule_names},
      {.name = "warmup",
       .kind = count,
       .help = "Steps in which the learning rate rises",
       .shown_default = "0",
       .most = kCounts},
      {.name = "final-fraction",
       .kind = real,
       .help = "cosine, wsd: part of the learning rate at the end",
       .shown_default = "0.1",
       .most = 1},
      {.name = "decay-steps",
       .kind = count,
       .help = "wsd: steps at the end in which the learning rate falls",
       .shown_default = "a fifth of --steps",
       .least = 1,
       .most = kCounts},
      {.name = "batch", .kind = count, .help = "Sequences a step", .shown_default = "8", .least = 1, .most = kMost},
      {.name = "accumulate",
       .kind = count,
       .help = "Compute the batch in N parts, to need less memory",
       .shown_default = "1",
       .least = 1,
       .most = kMost},
      {.name = "context",
       .kind = count,
       .help = "Tokens of a sequence",
       .shown_default = "the model's",
       .least = 1,
       .most = kMost},
      {.name = "loss-on",
       .kind = word,
       .help = "Which tokens are predicted: all of token files, or completion: TOKENS are then JSON, an object with "
               "prompt and completion a line",
       .shown_default = "all",
       .choices = losses},
      {.name = "order",
       .kind = word,
       .help = "Windows at random, or a shuffled pass in which each token is predicted once before any is again",
       .shown_default = "random",
       .choices = orders},
      {.name = "weights",
       .kind = weights,
       .help = "Share of the windows for each token file: 0.7,0.3",
       .shown_default = "by length"},
      {.name = "seed",
       .kind = count,
       .help = "Of batches, symmetry-breaking biases and bounces",
       .shown_default = "0",
       .most = 9e18},
      {.name = "precision",
       .kind = word,
       .help = "Of matrix products; auto: bf16 where the processor has it",
       .shown_default = "f32",
       .choices = precisions},
  };
  return table;
}

Json parse_setting(const Setting& setting, const std::string& text) {
  const auto expected = [&](const std::string& what) {
    return UsageError("--{}: expected {}, found {}", setting.name, what, text);
  };
  const auto range = [&] {
    std::string words;
    if (setting.least > -kAny) words += fmt::format(" {} {:g}", setting.open ? "above" : "of at least", setting.least);
    if (setting.most < kCounts) words += fmt::format(" and at most {:g}", setting.most);
    return words;
  };
  switch (setting.kind) {
  case SettingKind::word: {
    const std::vector<std::string> choices = setting.choices();
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    throw UsageError("--{}: expected {}, found {}{}", setting.name, fmt::join(choices, ", "), text,
                     did_you_mean(text, choices));
  }
  case SettingKind::real: {
    if (!setting.word.empty() && text == setting.word) return text;
    const auto value = parse_real(text);
    if (!value || !fits(setting, *value)) throw expected("a finite number" + range());
    return *value;
  }
  case SettingKind::count: {
    const auto value = parse_count(text);
    if (!value || !fits(setting, static_cast<double>(*value))) throw expected("a whole number" + range());
    return *value;
  }
  case SettingKind::flag:
    return text == "true";
  case SettingKind::groups:
    return parse_group(text);
  case SettingKind::weights:
    break;
  }
  Json list = Json::array();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto value = parse_real(std::string_view(text).substr(begin, end - begin));
    if (!value || *value <= 0) throw expected("numbers above 0 with commas between them");
    list.push_back(*value);
    begin = end + 1;
  }
  return list;
}

Json resolve_settings(const Json& given, const Json& stored, const Surroundings& surroundings) {
  const auto lookup = [](const Json& from, std::string_view name) -> Json {
    if (!from.is_object()) return {};
    const auto found = from.find(name);
    return found == from.end() ? Json() : *found;
  };
  const auto chosen = [&](std::string_view name, const Json& otherwise) -> Json {
    if (Json value = lookup(given, name); !value.is_null()) return value;
    if (Json value = lookup(stored, name); !value.is_null()) return value;
    return otherwise;
  };
  const std::string optimizer_name = chosen("optimizer", "adamw").get<std::string>();
  const optimizers::Optimizer& optimizer = optimizers::optimizer_of(optimizer_name);
  // A learning rate of one optimizer means nothing to another.
  const bool same_optimizer = lookup(stored, "optimizer") == optimizer_name;
  const auto hyperparameter = [&](std::string_view name) -> Json {
    if (same_optimizer) return chosen(name, default_of(optimizer, name));
    const Json value = lookup(given, name);
    return value.is_null() ? default_of(optimizer, name) : value;
  };
  const ScheduleKind schedule = optimizers::schedule_of(chosen("schedule", "constant").get<std::string>());
  const bool decays_rate = schedule != ScheduleKind::constant;

  Json all = Json::object();
  std::string without; // why a setting has no effect
  for (const Setting& setting : all_settings()) {
    const std::string_view name = setting.name;
    without.clear();
    Json value;
    if (name == "optimizer") {
      value = optimizer_name;
    } else if (name == "f0-fraction") {
      if (all.contains("f0") && all["f0"] == "auto")
        value = chosen(name, 0.5);
      else
        without = "without --f0 auto";
    } else if (name == "group") {
      value = chosen(name, {});
      if (!value.is_null()) check_groups(value, optimizer_name);
    } else if (name == "clip" || name == "lr" || name == "weight-decay") {
      value = hyperparameter(name);
    } else if (belongs_to_an_optimizer(name)) {
      if (std::find(optimizer.options.begin(), optimizer.options.end(), name) == optimizer.options.end())
        without = "with --optimizer " + optimizer_name;
      else
        value = hyperparameter(name);
    } else if (name == "decay") {
      if (all["weight-decay"] == 0.0)
        without = "without weight decay";
      else
        value = same_optimizer                  ? chosen(name, "all")
                : lookup(given, name).is_null() ? Json("all")
                                                : lookup(given, name);
    } else if (name == "schedule") {
      value = optimizers::name_of(schedule);
    } else if (name == "final-fraction") {
      if (decays_rate)
        value = chosen(name, 0.1);
      else
        without = "with --schedule constant";
    } else if (name == "decay-steps") {
      if (schedule == ScheduleKind::wsd)
        value = chosen(name, std::max<std::uint64_t>(1, surroundings.steps / 5));
      else
        without = "without --schedule wsd";
    } else if (name == "weights") {
      if (surroundings.digests.size() > 1) {
        value = chosen(name, {});
        if (!value.is_null() && value.size() != surroundings.digests.size())
          throw UsageError("--weights: expected {} numbers, one for each token file, found {}",
                           surroundings.digests.size(), value.size());
      } else {
        without = "with one token file";
      }
    } else if (name == "loss-on") {
      // Not taken over from the run before: it says what the files of this line are.
      if (lookup(given, name) == "completion") value = "completion";
    } else if (name == "precision") {
      const std::string word = chosen(name, "f32").get<std::string>();
      value = models::precision_of(word) == models::Precision::bf16 ? "bf16" : "f32";
    } else {
      const std::pair<std::string_view, std::int64_t> defaults[] = {
          {"warmup", 0}, {"batch", 8}, {"accumulate", 1}, {"context", surroundings.model_context}, {"seed", 0}};
      for (const auto& [key, count] : defaults)
        if (key == name) value = chosen(name, count);
      if (name == "order") value = chosen(name, "random");
    }
    if (!without.empty() && !lookup(given, name).is_null()) throw UsageError("--{} has no effect {}", name, without);
    // What comes from a file has not been checked yet.
    if (value.is_number() && !fits(setting, value.get<double>()))
      throw Error("the checkpoint's --{} is {}, which cannot be", name, value.dump());
    if (!value.is_null()) all[std::string(name)] = value;
  }
  if (all.contains("f0") && all["f0"] == "auto" && optimizer_name != "ecd")
    throw UsageError("--f0 auto has no effect with --optimizer {}: its energy is counted from one F0", optimizer_name);
  if (decays_rate) all["steps"] = surroundings.steps;
  all["data"] = surroundings.digests;

  if (all["accumulate"] > all["batch"])
    throw UsageError("--accumulate {}: a batch of {} has no more parts than sequences",
                     all["accumulate"].get<std::int64_t>(), all["batch"].get<std::int64_t>());
  if (all["context"] > surroundings.model_context)
    throw UsageError("--context {}: the model's is {}", all["context"].get<std::int64_t>(), surroundings.model_context);
  return all;
}

namespace {

/// Takes over the hyperparameters that `json` has.
void set_hyperparameters(const Json& json, optimizers::Hyperparameters& h) {
  for (const auto& [key, value] : json.items()) {
    if (double* real = real_of(h, key); real != nullptr && value != "auto") *real = value.get<double>();
    if (bool* flag = flag_of(h, key)) *flag = value.get<bool>();
    if (std::int64_t* count = count_of(h, key)) *count = value.get<std::int64_t>();
    if (key == "first-step") h.apply_first_step = value == "apply";
  }
}

} // namespace

Settings settings_of(const Json& json, const std::string& name) try {
  Settings settings;
  settings.optimizer = &optimizers::optimizer_of(json.at("optimizer").get<std::string>());
  settings.hyperparameters = settings.optimizer->defaults;
  set_hyperparameters(json, settings.hyperparameters);
  settings.decay_matrices_only = json.value("decay", "all") == "matrices";
  if (json.contains("f0-fraction")) settings.f0_fraction = json.at("f0-fraction").get<double>();
  for (const Json& own : json.value("group", Json::array())) {
    // What a group does not say is the run's, but for another optimizer's hyperparameters.
    Group group{.parameters = own.at("parameters").get<std::string>(),
                .optimizer = &optimizers::optimizer_of(own.value("optimizer", std::string(settings.optimizer->name))),
                .hyperparameters = {},
                .decay_matrices_only = own.value("decay", json.value("decay", "all")) == "matrices"};
    group.hyperparameters =
        group.optimizer == settings.optimizer ? settings.hyperparameters : group.optimizer->defaults;
    group.hyperparameters.clip = settings.hyperparameters.clip;
    set_hyperparameters(own, group.hyperparameters);
    settings.groups.push_back(group);
  }
  settings.schedule = {.kind = optimizers::schedule_of(json.at("schedule").get<std::string>()),
                       .warmup = json.at("warmup").get<std::uint64_t>(),
                       .final_fraction = json.value("final-fraction", 0.0),
                       .decay_steps = json.value("decay-steps", std::uint64_t{0})};
  settings.schedule_steps = json.value("steps", std::uint64_t{0});
  settings.batch = json.at("batch").get<std::int64_t>();
  settings.accumulate = json.at("accumulate").get<std::int64_t>();
  settings.context = json.at("context").get<std::int64_t>();
  settings.order = json.at("order") == "shuffle" ? Order::shuffle : Order::random;
  settings.weights = json.value("weights", std::vector<double>());
  settings.seed = json.at("seed").get<std::uint64_t>();
  settings.precision = models::precision_of(json.at("precision").get<std::string>());
  return settings;
} catch (const Json::exception&) {
  throw Error("{}: the settings of its training are not whole", name);
}

std::vector<std::string> differences(const Json& was, const Json& now) {
  const auto text = [](const Json& value) {
    std::string words = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array() && words.size() > 1) words = words.substr(1, words.size() - 2);
    return words;
  };
  std::vector<std::string> changes;
  for (const auto& [key, value] : now.items()) {
    const auto before = was.find(key);
    if (before != was.end() && *before == value) continue;
    if (key == "data")
      changes.emplace_back("other token files");
    else if (before == was.end())
      changes.push_back(fmt::format("--{} {}", key, text(value)));
    else
      changes.push_back(fmt::format("--{} {} (was {})", key, text(value), text(*before)));
  }
  return changes;
}

} // namespace noether::training
