// eval sharpness: the largest eigenvalues of the loss' Hessian.
#include "checkpoint_cells.h"
#include "eval/subcommands.h"

#include "evaluation/sharpness.h"
#include "models/conserved.h"
#include "text/token_file.h"

#include <nlohmann/json.hpp>

namespace noether {

namespace {

/// A setting of the run that made a checkpoint, as it was asked for last; null where none did. state: its training's.
nlohmann::ordered_json run_setting(const nlohmann::ordered_json& state, const std::string& name) {
  if (!state.is_object() || !state.contains("phases") || !state["phases"].is_array() || state["phases"].empty())
    return nullptr;
  const nlohmann::ordered_json& phase = state["phases"].back();
  if (!phase.is_object() || !phase.contains("settings") || !phase["settings"].contains(name)) return nullptr;
  return phase["settings"][name];
}

struct SharpnessCommand {
  std::vector<std::string> inputs;
  evaluation::SharpnessOptions options;
  std::string biases = "mean", heads;
};

CLI::App* add_sharpness(CLI::App& app, Common& common, SharpnessCommand& command) {
  CLI::App* sharpness =
      app.add_subcommand("sharpness", "The largest eigenvalues of the loss' Hessian, beside 2 / learning rate");
  sharpness->footer(
      "By Lanczos' method, with exact products of the Hessian of the mean loss over some windows of the tokens. "
      "Gradient\n"
      "descent stands learning rates below 2 / the largest; an eigenvalue is as near as the residual says.\n"
      "Example: noether eval sharpness model.h5 train.h5 --count 3\n"
      "         noether eval sharpness model.h5 train.h5 --heads imbalance.tsv");
  add_inputs(*sharpness, command.inputs, "DATA",
             "Checkpoints, - for those that come through stdin; last the tokens, or a linear transformer's prompts");
  add_count(*sharpness, "--count", command.options.lanczos.count, "Eigenvalues, the largest first", 1, 1000);
  add_count(*sharpness, "--windows", command.options.windows, "Windows of the context, evenly spread over the tokens",
            1, 1 << 20);
  add_count(*sharpness, "--batch", command.options.batch, "Windows at a time", 1, 1 << 20);
  add_count(*sharpness, "--iterations", command.options.lanczos.iterations,
            "Products with the Hessian, at most; each keeps a vector as long as the parameters", 1, 1 << 20);
  add_real(*sharpness, "--tolerance", command.options.lanczos.tolerance,
           "Largest residual, relative to the largest absolute eigenvalue", 0, 1, true);
  add_choice(*sharpness, "--biases", command.biases, {"mean", "none"},
             "Symmetry-breaking biases, where the model has any");
  sharpness
      ->add_option("--heads", command.heads, "Also a table of each head's two pairs of factors, and their imbalance")
      ->type_name("FILE");
  add_seed(*sharpness, common);
  add_threads(*sharpness, common);
  add_json(*sharpness, common);
  add_output(*sharpness, common, "Where the table goes");
  return sharpness;
}

/// Both pairs of factors that a head is made of: how large each is, and by how much the first is larger.
void write_heads(TableWriter& table, architecture::Checkpoint& checkpoint) {
  const models::FactorNorms norms = models::factor_norms(checkpoint.config, checkpoint.parameters);
  const auto at = [&](const at::Tensor& of, std::int64_t layer, std::int64_t head) {
    return of[layer][head].item<double>();
  };
  for (std::int64_t layer = 0; layer < checkpoint.config.layers; ++layer)
    for (std::int64_t head = 0; head < checkpoint.config.kv_heads; ++head) {
      const double q = at(norms.q, layer, head), k = at(norms.k, layer, head), v = at(norms.v, layer, head),
                   o = at(norms.o, layer, head);
      table.row({checkpoint.name, step_of(checkpoint), layer, head, q, k, q - k, v, o, v - o});
    }
}

void run_sharpness(SharpnessCommand& command, const CLI::App& app, const Common& common) {
  command.options.biases = evaluation::biases_of(command.biases);
  command.options.lanczos.seed = common.seed;
  command.options.threads = common.thread_count();
  std::vector<Source> sources;
  store::FileReader data = open_inputs(command.inputs, sources);
  const bool linear = data.kind() == store::kTensorsFile.name;
  std::optional<text::TokenFile> tokens;
  regression::Prompts prompts;
  std::optional<regression::Regression> regression;
  if (linear) {
    prompts = regression::read_prompts(data);
    regression.emplace(prompts);
  } else
    tokens.emplace(std::move(data));
  for (const char* option : {"--windows", "--batch", "--biases", "--heads"})
    if (linear && app.count(option) > 0) throw UsageError("{} has no effect on a linear transformer", option);

  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TextOutput> heads_output;
  std::optional<TableWriter> table, heads;
  if (!command.heads.empty()) {
    heads_output.emplace(command.heads);
    heads = table_writer({{"checkpoint"},
                          {"step"},
                          {"layer"},
                          {"head"},
                          {"norm_Q"},
                          {"norm_K"},
                          {"imbalance_QK"},
                          {"norm_V"},
                          {"norm_O"},
                          {"imbalance_VO"}},
                         common, *heads_output);
  }
  const auto write = [&](const std::string& name, const Cell& step, const nlohmann::ordered_json& training,
                         const evaluation::Sharpness& found) {
    const auto optimizer = linear ? nlohmann::ordered_json("gd") : run_setting(training, "optimizer"),
               rate = run_setting(training, "lr");
    const bool known = optimizer.is_string() && rate.is_number();
    if (!table)
      table = table_writer({{"checkpoint"},
                            {"step"},
                            {linear ? "prompts" : "tokens"},
                            {"loss"},
                            {"rank"},
                            {"eigenvalue"},
                            {"residual", 2},
                            {"optimizer"},
                            {"learning_rate"},
                            {"two_over_lr"}},
                           common, output);
    for (std::size_t i = 0; i < found.eigenvalues.size(); ++i)
      table->row({name, step, found.tokens, found.loss, static_cast<std::int64_t>(i + 1), found.eigenvalues[i].value,
                  found.eigenvalues[i].residual, known ? Cell(optimizer.get<std::string>()) : Cell(),
                  known ? Cell(rate.get<double>()) : Cell(), known ? Cell(2 / rate.get<double>()) : Cell()});
  };
  for_each_checkpoint(sources, [&](const store::FileReader& file) {
    if (linear) {
      const regression::LinearCheckpoint checkpoint = regression::read_linear_checkpoint(file);
      regression::check_fit(prompts, checkpoint);
      return write(checkpoint.name, step_of(checkpoint.training), checkpoint.training,
                   evaluation::sharpness(checkpoint.model, *regression, command.options.lanczos));
    }
    architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, false);
    write(checkpoint.name, step_of(checkpoint), checkpoint.training.state,
          evaluation::sharpness(checkpoint, *tokens, command.options, reporter));
    if (heads) write_heads(*heads, checkpoint);
  });
  if (heads_output) heads_output->close();
  output.close();
}

} // namespace

Subcommand sharpness_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<SharpnessCommand>();
  CLI::App* app = add_sharpness(parent, common, *command);
  return {app, [=, &common] { run_sharpness(*command, *app, common); }};
}

} // namespace noether
