// eval loss: held-out text.
#include "checkpoint_cells.h"
#include "eval/subcommands.h"

#include "evaluation/loss.h"

#include <limits>

namespace noether {

namespace {

struct LossCommand {
  std::vector<std::string> inputs; ///< checkpoints, and last the tokens: CLI11 cannot tell them apart
  evaluation::LossOptions options;
  std::string prefix = "auto", biases = "mean", precision = "f32";
};

CLI::App* add_loss(CLI::App& app, Common& common, LossCommand& command) {
  CLI::App* loss = app.add_subcommand("loss", "The loss on held-out tokens, a row for each checkpoint");
  loss->footer(
      "Each token is scored once: windows follow each other, and with a --stride below the --window each but the "
      "first\n"
      "scores its last --stride tokens only, with the others before them as context. Loss is in nats a token; its\n"
      "standard error is over documents, or over 64 blocks where there are fewer than 30 documents.\n"
      "Example: noether eval loss symmetric.h5 broken.h5 valid.h5\n"
      "         noether train start.h5 train.h5 --emit-every 100 | noether eval loss - valid.h5");
  add_inputs(*loss, command.inputs, "TOKENS",
             "Checkpoints, - for those that come through stdin; last the tokens to score");
  add_count(*loss, "--window", command.options.window, "Tokens of a forward pass")->default_str("the model's context");
  add_count(*loss, "--stride", command.options.stride, "Tokens from a window to the next")->default_str("the window");
  add_count(*loss, "--limit", command.options.limit, "Score the first N tokens only")->default_str("all");
  add_choice(*loss, "--prefix", command.prefix, {"auto", "end-of-text", "none"},
             "What the first token is predicted from; auto: end-of-text where the tokenizer has one; after none the "
             "first token is not scored");
  add_choice(*loss, "--biases", command.biases, {"mean", "sampled", "none"},
             "Symmetry-breaking biases, where the model has any; sampled: a draw for each window");
  add_choice(*loss, "--precision", command.precision, {"f32", "bf16", "auto"},
             "Of the matrix products; auto: bf16 where the processor has it");
  add_seed(*loss, common);
  add_threads(*loss, common);
  add_json(*loss, common);
  add_output(*loss, common, "Where the table goes");
  return loss;
}

std::vector<Column> loss_columns() {
  return {{"checkpoint"},  {"step"},       {"tokens"},        {"bytes"},          {"window"},
          {"stride"},      {"prefix"},     {"biases"},        {"loss"},           {"loss_stderr", 2},
          {"stderr_over"}, {"perplexity"}, {"bits_per_byte"}, {"min_batch_4096"}, {"tokens_per_second", 4},
          {"tokenizer"},   {"digest"}};
}

void run_loss(LossCommand& command, const CLI::App& app, const Common& common) {
  evaluation::LossOptions& options = command.options;
  options.prefix = evaluation::prefix_of(command.prefix);
  options.biases = evaluation::biases_of(command.biases);
  options.precision = models::precision_of(command.precision);
  options.seed = common.seed;
  options.threads = common.thread_count();
  if (app.count("--seed") > 0 && options.biases != evaluation::Biases::sampled)
    throw UsageError("--seed has no effect without --biases sampled");
  std::vector<Source> sources;
  const text::TokenFile tokens(open_inputs(command.inputs, sources));
  for (const Source& source : sources)
    if (source.first) evaluation::check_fit(*source.first, tokens, options);

  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TableWriter> table; // from the first row on: a failure before it leaves nothing
  for_each_checkpoint(sources, [&](store::FileReader file) {
    evaluation::check_fit(file, tokens, options); // before its parameters are copied
    architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, false);
    { const store::FileReader closed = std::move(file); } // one copy of it is enough
    const evaluation::Loss row = evaluation::evaluate_loss(checkpoint, tokens, options, reporter);
    if (!table) table = table_writer(loss_columns(), common, output);
    table->row({checkpoint.name, step_of(checkpoint), row.tokens, row.bytes, row.window, row.stride,
                row.prefixed ? "end-of-text" : "none", std::string(row.biases), row.loss, cell(row.standard_error),
                fmt::format("{} {}", row.units, row.over_documents ? "documents" : "blocks"), row.perplexity,
                cell(row.bits_per_byte), cell(row.min_batch_4096), static_cast<double>(row.tokens) / row.seconds,
                shown(tokens.tokenizer_digest(), common), shown(checkpoint.digest, common)});
  });
  output.close();
}

} // namespace

Subcommand loss_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<LossCommand>();
  CLI::App* app = add_loss(parent, common, *command);
  return {app, [=, &common] { run_loss(*command, *app, common); }};
}

} // namespace noether
