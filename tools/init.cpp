// A fresh checkpoint of a named or described architecture.
#include "common.h"

#include "architecture/checkpoint.h"
#include "architecture/presets.h"
#include "base/number.h"
#include "formats/tokenizer_files.h"

#include <array>

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
bool breaks_q(const Config& config) { return config.breaks_q(); }
bool breaks_v(const Config& config) { return config.breaks_v(); }

/// "0.5", or "0.05:0.15" for a linear range over the head's components; nothing is changed where it was not given.
void parse_range(const char* option, const std::string& text, double& first, double& last) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  const auto from = parse_real(text.substr(0, colon));
  const auto to = colon == std::string::npos ? from : parse_real(text.substr(colon + 1));
  if (!from || !to) throw UsageError("{}: expected a number, or FIRST:LAST, found {}", option, text);
  first = *from;
  last = *to;
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
             "         noether init gpt2-124m --dry-run");
  add_output(app, common, "Where the checkpoint goes");
  add_seed(app, common);
  add_threads(app, common);
  add_zstd(app, common);
  add_json(app, common);

  std::string name;
  app.add_option("architecture", name, fmt::format("One of {}", fmt::join(preset_names(), ", ")))
      ->required()
      ->type_name("NAME");
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
  bool tied = false, biases = false, gated = false;
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
  auto* epsilon_option =
      add_real(app, "--norm-epsilon", norm_epsilon, "Added to the variance in a norm", 0, 1, true)->group(parts);
  auto* fraction_option =
      add_real(app, "--rope-fraction", rope_fraction, "Part of a head that is rotated", 0, 1, true)->group(parts);
  auto* base_option =
      add_real(app, "--rope-base", rope_base, "Base of the rotations' wavelengths", 1, 1e12)->group(parts);
  for (CLI::Option* option : {position_option, activation_option, norm_option}) option->default_str("");

  const std::string breaking = "Symmetry breaking (arXiv 2601.22257)";
  add_choice(app, "--break", symmetry_break = "none", break_names(), "Which projections get unlearned random biases")
      ->group(breaking);
  std::string q_mean, q_deviation, v_mean, v_deviation;
  const auto add_range = [&](const std::string& option, std::string& value, const std::string& text) {
    return app.add_option(option, value, text)->type_name("X[:Y]")->group(breaking);
  };
  const std::vector<Refinement> refinements{
      {fraction_option, has_rope, "--position rope"},
      {base_option, has_rope, "--position rope"},
      {add_range("--q-mean", q_mean,
                 "Mean of the query biases, from the head's first component to its last; by default 0.5"),
       breaks_q, "--break q or qv"},
      {add_range("--q-deviation", q_deviation, "Their standard deviation; by default 0.05:0.15"), breaks_q,
       "--break q or qv"},
      {add_range("--v-mean", v_mean, "Mean of the value biases; by default 0.5"), breaks_v, "--break v or qv"},
      {add_range("--v-deviation", v_deviation, "Their standard deviation; by default 0.05"), breaks_v,
       "--break v or qv"},
  };
  bool dry_run = false;
  app.add_flag("--dry-run", dry_run, "Print parameters, bytes and operations by group, and make nothing");

  return run_tool(app, argc, argv, common, [&] {
    std::optional<text::Tokenizer> tokenizer;
    if (!tokenizer_path.empty()) {
      tokenizer = formats::load_tokenizer(tokenizer_path);
      if (!sizes.vocab_size) sizes.vocab_size = tokenizer->vocab_size();
      if (*sizes.vocab_size < tokenizer->vocab_size())
        throw UsageError("--vocab-size {} is less than the tokenizer's {}", *sizes.vocab_size, tokenizer->vocab_size());
    }
    Config config = describe(name, sizes);
    if (position_option->count() > 0) config.position = position_of(position);
    if (activation_option->count() > 0) config.activation = activation_of(activation);
    if (norm_option->count() > 0) config.norm = norm_of(norm);
    if (tied_option->count() > 0) config.tied_head = tied;
    if (biases_option->count() > 0) config.biases = biases;
    if (gated_option->count() > 0) config.gated_mlp = gated;
    if (epsilon_option->count() > 0) config.norm_epsilon = norm_epsilon;
    if (fraction_option->count() > 0) config.rope_fraction = rope_fraction;
    if (base_option->count() > 0) config.rope_base = rope_base;
    config.symmetry_break = break_of(symmetry_break);
    parse_range("--q-mean", q_mean, config.q_bias.mean_first, config.q_bias.mean_last);
    parse_range("--q-deviation", q_deviation, config.q_bias.deviation_first, config.q_bias.deviation_last);
    parse_range("--v-mean", v_mean, config.v_bias.mean_first, config.v_bias.mean_last);
    parse_range("--v-deviation", v_deviation, config.v_bias.deviation_first, config.v_bias.deviation_last);
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
    Checkpoint checkpoint = initialise(config, common.seed, common.thread_count());
    checkpoint.tokenizer = std::move(tokenizer);
    std::vector<store::ProvenanceRecord::Input> inputs;
    if (checkpoint.tokenizer) inputs.push_back({"tokenizer", text::digest(*checkpoint.tokenizer)});
    output.write(to_file(checkpoint, false), {to_json(provenance_record(common, true, inputs))});
    output.close();
  });
}
