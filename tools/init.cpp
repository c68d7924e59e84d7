// A fresh checkpoint of a named or described architecture.
#include "common.h"

#include "architecture/checkpoint.h"
#include "architecture/presets.h"
#include "base/number.h"
#include "formats/model_files.h"
#include "formats/tokenizer_files.h"
#include "regression/linear_transformer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>

namespace {

using namespace noether;
using namespace noether::architecture;

/// An option that changes a field only when it is given, and makes no sense unless `applies`.
struct Refinement {
  CLI::Option* option;
  bool (*applies)(const Config&);
  const char* needs; ///< said when it does not apply
};

bool has_rope(const Config& config) { return config.position == Position::rope; }
bool has_experts(const Config& config) { return config.experts > 0; }
bool breaks_q(const Config& config) { return config.breaks_q(); }
bool breaks_v(const Config& config) { return config.breaks_v(); }

bool breaks_k(const Config& config) { return config.breaks_k(); }
bool breaks(const Config& config) { return config.symmetry_break != Break::none; }

/// "0.5"; "0.05:0.15" for a linear range over the head's components; "@FILE" for numbers in a file.
std::vector<double> parse_components(const std::string& option, const std::string& text) {
  std::vector<double> values;
  if (text.starts_with('@')) {
    const std::string path = text.substr(1);
    std::ifstream file(path);
    if (!file) throw Error("{}: {}", path, system_reason(errno));
    for (std::string word; file >> word;) {
      const auto value = parse_real(word);
      if (!value) throw Error("{}: expected numbers, found {}", path, word);
      values.push_back(*value);
    }
    if (values.empty()) throw Error("{}: expected numbers, found none", path);
    return values;
  }
  const std::size_t colon = text.find(':');
  const auto first = parse_real(text.substr(0, colon));
  const auto last = colon == std::string::npos ? first : parse_real(text.substr(colon + 1));
  if (!first || !last) throw UsageError("{}: expected a number, FIRST:LAST or @FILE, found {}", option, text);
  values.push_back(*first);
  if (colon != std::string::npos) values.push_back(*last);
  return values;
}

/// The parameters of `from` in a checkpoint of another configuration, which must have them all; what it has besides is
/// drawn from the seed.
Checkpoint carry_over(const Config& config, const Checkpoint& from, const Common& common, Reporter& reporter) {
  Checkpoint checkpoint = initialise(config, common.seed, common.thread_count());
  std::map<std::string_view, const Parameter*> fresh;
  for (const Parameter& parameter : checkpoint.layout) fresh[parameter.name] = &parameter;
  for (const Parameter& parameter : from.layout) {
    const auto found = fresh.find(parameter.name);
    if (found == fresh.end())
      throw UsageError("{}: {} has no place in what the options describe", from.name, parameter.name);
    if (found->second->shape != parameter.shape)
      throw UsageError("{}: {} has shape [{}], and the options ask for [{}]", from.name, parameter.name,
                       fmt::join(parameter.shape, ", "), fmt::join(found->second->shape, ", "));
    std::copy_n(from.parameters.data() + parameter.offset, parameter.count,
                checkpoint.parameters.data() + found->second->offset);
    fresh.erase(found);
  }
  if (fresh.size() == 1) reporter.message(fmt::format("{} is drawn afresh", fresh.begin()->first));
  if (fresh.size() > 1)
    reporter.message(fmt::format("{} parameters are drawn afresh, {} the first", fresh.size(), fresh.begin()->first));
  return checkpoint;
}

/// The options of `init linear-transformer`; without them it takes only those that every checkpoint has.
struct LinearCommand {
  regression::StartOptions options;
  std::vector<CLI::Option*> own;
};

void add_linear(CLI::App& app, LinearCommand& command) {
  regression::StartOptions& options = command.options;
  command.own = {
      add_count(app, "--dimension", options.dimension, "Components of an x; a token is (x, y)", 1, 4096),
      add_real(app, "--value", options.value, "Where the value factor begins"),
      add_real(app, "--key-query", options.key_query, "Where the key-query factor begins"),
      app.add_flag("--matrices", options.matrices, "Train both matrices, and not one factor of each"),
      add_real(app, "--deviation", options.deviation, "Standard deviation of noise all over the matrices", 0)};
  for (CLI::Option* option : command.own) option->group("linear-transformer (arXiv 2605.21292)");
}

void run_linear(const CLI::App& app, LinearCommand& command, const Common& common) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool own = std::find(command.own.begin(), command.own.end(), option) != command.own.end();
    const bool shared = name == "architecture" || name == "--output" || name == "--seed" || name == "--threads" ||
                        name == "--zstd" || name == "--quiet" || name == "--verbose" || name == "--progress";
    if (option->count() == 0 || own || shared) continue;
    if (name == "model") throw UsageError("unexpected argument {}", option->as<std::string>());
    throw UsageError("{} has no effect with linear-transformer", name);
  }
  if (command.options.deviation > 0 && !command.options.matrices)
    throw UsageError("--deviation has no effect without --matrices");
  command.options.seed = common.seed;
  store::OutputStream output(common.output, common.zstd_level);
  regression::LinearCheckpoint checkpoint;
  checkpoint.model = start(command.options);
  output.write(to_file(checkpoint), {to_json(provenance_record(common, true))});
  output.close();
}

void print_sizes(const Config& config, const Common& common) {
  struct Total {
    std::int64_t tensors = 0, parameters = 0;
  };
  std::array<Total, 5> by_group;
  Total all;
  for (const Parameter& parameter : parameters(config))
    for (Total* total : {&by_group[static_cast<std::size_t>(parameter.group)], &all}) {
      ++total->tensors;
      total->parameters += parameter.count;
    }
  const Flops flops = flops_per_token(config, config.context);
  TextOutput output("-");
  TableWriter table =
      table_writer({{"group"}, {"tensors"}, {"parameters"}, {"bytes"}, {"forward_flops_per_token"}}, common, output);
  const auto row = [&table](std::string_view name, const Total& total, double operations) {
    table.row({std::string(name), total.tensors, total.parameters, 4 * total.parameters, operations});
  };
  const std::array<double, 5> operations{0, flops.attention, flops.mlp, 0, flops.head};
  for (std::size_t i = 0; i < by_group.size(); ++i)
    if (by_group[i].tensors > 0 || operations[i] > 0) row(name_of(static_cast<Group>(i)), by_group[i], operations[i]);
  row("total", all, flops.forward);
  output.close();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Make a fresh checkpoint of a named or described architecture.", "init"};
  Common common;
  add_common(app, common,
             "Example: noether init gpt2 --layers 4 --width 128 --context 128 --break qv -t bpe.h5 > start.h5\n"
             "         noether init from model.h5 --break qv > broken.h5\n"
             "         noether init from gpt2/model.safetensors -t gpt2/tokenizer.json > gpt2.h5\n"
             "         noether init gpt2-124m --dry-run");
  add_output(app, common, "Where the checkpoint goes");
  add_seed(app, common);
  add_threads(app, common);
  add_zstd(app, common);
  add_json(app, common);

  std::string name;
  app.add_option("architecture", name,
                 fmt::format("One of {}, linear-transformer; or from, and a model", fmt::join(preset_names(), ", ")))
      ->required()
      ->type_name("NAME");
  std::string model_path;
  app.add_option("model", model_path,
                 "After from: what has weights to be kept; a checkpoint, or - for stdin, or a model of others: "
                 "safetensors, PyTorch, or a folder of them")
      ->type_name("MODEL");
  Sizes sizes;
  const auto add_size = [&app](const std::string& option, std::optional<std::int64_t>& value, const std::string& text) {
    app.add_option_function<std::string>(
           option, [&value](const std::string& given) { value = *parse_count(given); }, text)
        ->type_name("N")
        ->group("Sizes")
        ->check([](const std::string& given) {
          const auto count = parse_count(given);
          return count && *count > 0 && *count <= (1 << 24)
                     ? std::string()
                     : "expected a whole number from 1 to 16777216, found " + given;
        });
  };
  add_size("--layers", sizes.layers, "Layers");
  add_size("--heads", sizes.heads, "Attention heads; by default as many as make a head 64 wide");
  add_size("--kv-heads", sizes.kv_heads,
           "Key/value heads, each shared by heads / kv-heads heads; by default as many as heads");
  add_size("--width", sizes.width, "Width of the residual stream");
  add_size("--head-width", sizes.head_width, "Width of a head; by default width / heads");
  add_size("--hidden", sizes.hidden, "Hidden features of an MLP; by default 4 width, for llama 8/3 width");
  add_size("--context", sizes.context, "Longest context; by default 1024");
  add_size("--vocab-size", sizes.vocab_size, "Vocabulary; by default the tokenizer's");
  std::string tokenizer_path;
  app.add_option("-t,--tokenizer", tokenizer_path, "A tokenizer, kept in the checkpoint")
      ->type_name("FILE")
      ->group("Sizes");

  std::string position, activation, symmetry_break, norm;
  bool tied = false, biases = false, gated = false, qk_norm = false;
  double rope_fraction = 1, rope_base = 10000, norm_epsilon = 1e-5;
  const std::string parts = "Parts";
  auto* position_option =
      add_choice(app, "--position", position, position_names(), "How positions are told apart")->group(parts);
  auto* activation_option =
      add_choice(app, "--activation", activation, activation_names(), "The MLP's activation")->group(parts);
  auto* norm_option = add_choice(app, "--norm", norm, {"layer", "rms"}, "Layer norm, or RMS norm")->group(parts);
  auto* tied_option =
      app.add_flag("--tied-head,!--no-tied-head", tied, "The head is the token embedding")->group(parts);
  auto* biases_option =
      app.add_flag("--biases,!--no-biases", biases, "Linear layers have learned biases")->group(parts);
  auto* gated_option =
      app.add_flag("--gated-mlp,!--no-gated-mlp", gated, "The MLP's features are gated, as Llama's")->group(parts);
  auto* qk_norm_option =
      app.add_flag("--qk-norm,!--no-qk-norm", qk_norm, "Queries and keys are normalised, head by head")->group(parts);
  std::int64_t experts = 0, experts_per_token = 2;
  double balance_loss = 0.01;
  auto* experts_option =
      add_count(app, "--experts", experts, "Experts in place of each MLP, of which a token takes a few", 1, 1 << 16)
          ->default_str("")
          ->group(parts);
  auto* per_token_option =
      add_count(app, "--experts-per-token", experts_per_token, "So many, the likeliest")->group(parts);
  auto* balance_option = add_real(app, "--balance-loss", balance_loss,
                                  "Weight in the training loss of how unequally busy the experts are", 0)
                             ->group(parts);
  auto* epsilon_option =
      add_real(app, "--norm-epsilon", norm_epsilon, "Added to the variance in a norm", 0, 1, true)->group(parts);
  auto* fraction_option =
      add_real(app, "--rope-fraction", rope_fraction, "Part of a head that is rotated", 0, 1, true)->group(parts);
  auto* base_option =
      add_real(app, "--rope-base", rope_base, "Base of the rotations' wavelengths", 1, 1e12)->group(parts);
  RopeScaling scaling;
  auto* factor_option =
      add_real(app, "--rope-factor", scaling.factor,
               "So many times longer wavelengths, for contexts longer than a model was trained with", 0, 1e6, true)
          ->group(parts);
  auto* original_option = add_count(app, "--rope-original", scaling.original_context,
                                    "with --rope-factor: of long wavelengths only, as Llama 3.1 after a context of N")
                              ->default_str("")
                              ->group(parts);
  for (CLI::Option* option : {position_option, activation_option, norm_option}) option->default_str("");

  const std::string breaking = "Symmetry breaking (arXiv 2601.22257)";
  auto* break_option =
      add_choice(app, "--break", symmetry_break, break_names(), "Which projections get unlearned random biases")
          ->default_str("none")
          ->group(breaking);
  std::vector<Refinement> refinements{
      {fraction_option, has_rope, "--position rope"}, {base_option, has_rope, "--position rope"},
      {factor_option, has_rope, "--position rope"},   {original_option, has_rope, "--position rope"},
      {per_token_option, has_experts, "--experts"},   {balance_option, has_experts, "--experts"}};
  struct BiasOption {
    const char *name, *help;
    BiasDistribution Config::*distribution;
    std::vector<double> BiasDistribution::*values;
    bool (*applies)(const Config&);
    const char* needs;
    std::string given{};
  };
  using Bias = BiasDistribution;
  std::array bias_options{
      BiasOption{"--q-mean", "Mean of the query biases, from the head's first component to its last; by default 0.5",
                 &Config::q_bias, &Bias::means, breaks_q, "--break q or qv"},
      BiasOption{"--q-deviation", "Their standard deviation; by default 0.05:0.15", &Config::q_bias, &Bias::deviations,
                 breaks_q, "--break q or qv"},
      BiasOption{"--k-mean", "Mean of the key biases; by default 0.5", &Config::k_bias, &Bias::means, breaks_k,
                 "--break k"},
      BiasOption{"--k-deviation", "Their standard deviation; by default 0.05", &Config::k_bias, &Bias::deviations,
                 breaks_k, "--break k"},
      BiasOption{"--v-mean", "Mean of the value biases; by default 0.5", &Config::v_bias, &Bias::means, breaks_v,
                 "--break v or qv"},
      BiasOption{"--v-deviation", "Their standard deviation; by default 0.05", &Config::v_bias, &Bias::deviations,
                 breaks_v, "--break v or qv"}};
  for (BiasOption& bias : bias_options)
    refinements.push_back({app.add_option(bias.name, bias.given, bias.help)->type_name("X[:Y]|@FILE")->group(breaking),
                           bias.applies, bias.needs});
  std::string bias_per = "layer";
  bool learned_bias = false;
  std::int64_t directions = 0;
  auto* per_option = add_choice(app, "--bias-per", bias_per, bias_per_names(),
                                "Whether a layer's heads share a vector, or have one each")
                         ->group(breaking);
  auto* directions_option =
      add_count(app, "--bias-directions", directions, "Draw N vectors from the seed; each step takes one of them")
          ->default_str("")
          ->group(breaking);
  auto* learned_option =
      app.add_flag("--learned-bias", learned_bias, "A control: draw the biases once, and let training learn them")
          ->group(breaking);
  for (CLI::Option* option : {per_option, directions_option, learned_option})
    refinements.push_back({option, breaks, "--break"});
  LinearCommand linear;
  add_linear(app, linear);
  bool dry_run = false;
  app.add_flag("--dry-run", dry_run, "Print parameters, bytes and operations by group, and make nothing");

  return run_tool(app, argc, argv, common, [&] {
    if (name == "linear-transformer") {
      run_linear(app, linear, common);
      return;
    }
    for (const CLI::Option* option : linear.own)
      if (option->count() > 0) throw UsageError("{} has no effect without linear-transformer", option->get_name());
    std::optional<text::Tokenizer> tokenizer;
    if (!tokenizer_path.empty()) {
      tokenizer = formats::load_tokenizer(tokenizer_path);
      if (!sizes.vocab_size && name != "from") sizes.vocab_size = tokenizer->vocab_size();
    }
    std::optional<Checkpoint> from;
    if (name == "from") {
      if (model_path.empty()) throw UsageError("from: expected a model");
      from = formats::load_model(model_path, sizes.heads);
    } else if (!model_path.empty()) {
      throw UsageError("unexpected argument {}", model_path);
    }
    Config config = from ? with_sizes(from->config, sizes) : describe(name, sizes);
    if (tokenizer && config.vocab_size < tokenizer->vocab_size())
      throw UsageError("{} {} is less than the tokenizer's {}", from ? "the model's vocabulary of" : "--vocab-size",
                       config.vocab_size, tokenizer->vocab_size());
    if (position_option->count() > 0) config.position = position_of(position);
    if (activation_option->count() > 0) config.activation = activation_of(activation);
    if (norm_option->count() > 0) config.norm = norm_of(norm);
    if (tied_option->count() > 0) config.tied_head = tied;
    if (biases_option->count() > 0) config.biases = biases;
    if (gated_option->count() > 0) config.gated_mlp = gated;
    if (epsilon_option->count() > 0) config.norm_epsilon = norm_epsilon;
    if (qk_norm_option->count() > 0) config.qk_norm = qk_norm;
    if (experts_option->count() > 0) {
      config.experts = experts;
      config.experts_per_token = std::min(experts, config.experts_per_token);
    }
    if (per_token_option->count() > 0) config.experts_per_token = experts_per_token;
    if (balance_option->count() > 0) config.balance_loss = balance_loss;
    if (fraction_option->count() > 0) config.rope_fraction = rope_fraction;
    if (base_option->count() > 0) config.rope_base = rope_base;
    if (factor_option->count() > 0) config.rope_scaling = scaling;
    if (original_option->count() > 0 && factor_option->count() == 0)
      throw UsageError("--rope-original has no effect without --rope-factor");
    if (break_option->count() > 0) config.symmetry_break = break_of(symmetry_break);
    for (const BiasOption& bias : bias_options)
      if (!bias.given.empty()) config.*bias.distribution.*bias.values = parse_components(bias.name, bias.given);
    if (per_option->count() > 0) config.bias_per = bias_per_of(bias_per);
    if (learned_option->count() > 0) config.learned_bias = learned_bias;
    if (directions_option->count() > 0) {
      config.bias_directions = directions;
      config.bias_seed = common.seed;
    }
    for (const Refinement& refinement : refinements)
      if (refinement.option->count() > 0 && !refinement.applies(config))
        throw UsageError("{} has no effect without {}", refinement.option->get_name(), refinement.needs);
    validate(config);
    if (dry_run) {
      print_sizes(config, common);
      return;
    }
    if (common.json) throw UsageError("--json has no effect without --dry-run");

    store::OutputStream output(common.output, common.zstd_level);
    Reporter reporter(common.program, common.verbosity());
    Checkpoint checkpoint =
        from ? carry_over(config, *from, common, reporter) : initialise(config, common.seed, common.thread_count());
    checkpoint.tokenizer = tokenizer || !from ? std::move(tokenizer) : std::move(from->tokenizer);
    std::vector<store::ProvenanceRecord::Input> inputs;
    std::vector<std::vector<std::string>> before;
    if (from) {
      inputs.push_back({"checkpoint", from->digest});
      before.push_back(std::move(from->provenance));
    }
    if (checkpoint.tokenizer) inputs.push_back({"tokenizer", text::digest(*checkpoint.tokenizer)});
    output.write(to_file(checkpoint, false), store::extend_provenance(before, provenance_record(common, true, inputs)));
    output.close();
  });
}
