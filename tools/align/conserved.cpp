// align momentum, balance: what symmetric training conserves.
#include "align/subcommands.h"
#include "checkpoint_cells.h"

#include "models/conserved.h"

#include <ATen/TensorOperators.h>
#include <algorithm>

namespace noether {

namespace {

struct ConservedCommand {
  std::vector<std::string> checkpoints;
};

CLI::App* add_momentum(CLI::App& app, Common& common, ConservedCommand& command) {
  CLI::App* momentum = app.add_subcommand("momentum", "Angular momenta, which exact symmetric dynamics conserve");
  momentum->footer(
      "|L_QK| and |L_VO| of each layer and key head, from the optimizer's momentum divided by its length.\n"
      "Example: noether align momentum model.h5\n"
      "         noether train start.h5 tokens.h5 --emit-every 100 --steps 1000 | noether align momentum -");
  momentum->add_option("checkpoints", command.checkpoints, "Checkpoints with their optimizer's state, or - for stdin")
      ->type_name("FILE...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_json(*momentum, common);
  add_output(*momentum, common, "Where the table goes");
  return momentum;
}

CLI::App* add_balance(CLI::App& app, Common& common, ConservedCommand& command) {
  CLI::App* balance = app.add_subcommand("balance", "Balances of weights, which gradient flow conserves");
  balance->footer("|W_Q W_Q^T - W_K W_K^T| and |W_V W_V^T - W_O^T W_O| of each layer and key head; the drift is the "
                  "norm of what these\n"
                  "matrices changed by since the first checkpoint.\n"
                  "Example: noether align balance start.h5 model.h5");
  balance->add_option("checkpoints", command.checkpoints, "Checkpoints of one model, or - for those from stdin")
      ->type_name("FILE...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_json(*balance, common);
  add_output(*balance, common, "Where the table goes");
  return balance;
}

void for_each_checkpoint(const std::vector<std::string>& paths, bool with_optimizer,
                         const std::function<void(architecture::Checkpoint&)>& use) {
  if (std::count(paths.begin(), paths.end(), "-") > 1) throw UsageError("only one input can be stdin (-)");
  for (const std::string& path : paths) {
    store::InputStream stream(path);
    while (std::optional<store::FileReader> file = stream.next()) {
      architecture::Checkpoint checkpoint = architecture::read_checkpoint(*file, with_optimizer);
      use(checkpoint);
    }
  }
}

/// Calls row(layer, head, place) for each key head; place: in [layers, kv_heads].
template <class Row> void for_each_key_head(const architecture::Config& c, const Row& row) {
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.kv_heads; ++head) row(layer, head, layer * c.kv_heads + head);
}

void run_momentum(const ConservedCommand& command, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for_each_checkpoint(command.checkpoints, true, [&](architecture::Checkpoint& checkpoint) {
    auto& states = checkpoint.training.optimizer;
    if (!states.contains("momentum"))
      throw Error("{}: no optimizer state in it, and so no momentum (a fresh checkpoint has none)", checkpoint.name);
    const models::HeadMatrices L =
        models::angular_momentum(checkpoint.config, checkpoint.parameters, states.at("momentum"));
    const at::Tensor qk = models::norms(L.qk).contiguous(), vo = models::norms(L.vo).contiguous();
    if (!table)
      table = table_writer({{"checkpoint"}, {"step"}, {"layer"}, {"head"}, {"L_QK"}, {"L_VO"}}, common, output);
    for_each_key_head(checkpoint.config, [&](std::int64_t layer, std::int64_t head, std::int64_t i) {
      table->row({checkpoint.name, step_of(checkpoint), layer, head, qk.const_data_ptr<double>()[i],
                  vo.const_data_ptr<double>()[i]});
    });
  });
  output.close();
}

void run_balance(const ConservedCommand& command, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  std::optional<models::HeadMatrices> first;
  for_each_checkpoint(command.checkpoints, false, [&](architecture::Checkpoint& checkpoint) {
    const models::HeadMatrices B = models::balance(checkpoint.config, checkpoint.parameters);
    if (!first) {
      first = B;
      table = table_writer(
          {{"checkpoint"}, {"step"}, {"layer"}, {"head"}, {"balance_QK"}, {"balance_VO"}, {"drift_QK"}, {"drift_VO"}},
          common, output);
    }
    if (B.qk.sizes() != first->qk.sizes())
      throw Error("{}: other layers or heads than the first checkpoint's", checkpoint.name);
    const at::Tensor columns[] = {models::norms(B.qk).contiguous(), models::norms(B.vo).contiguous(),
                                  models::norms(B.qk - first->qk).contiguous(),
                                  models::norms(B.vo - first->vo).contiguous()};
    for_each_key_head(checkpoint.config, [&](std::int64_t layer, std::int64_t head, std::int64_t i) {
      std::vector<Cell> cells{checkpoint.name, step_of(checkpoint), layer, head};
      for (const at::Tensor& column : columns) cells.emplace_back(column.const_data_ptr<double>()[i]);
      table->row(cells);
    });
  });
  output.close();
}

} // namespace

Subcommand momentum_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<ConservedCommand>();
  CLI::App* app = add_momentum(parent, common, *command);
  return {app, [=, &common] { run_momentum(*command, common); }};
}

Subcommand balance_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<ConservedCommand>();
  CLI::App* app = add_balance(parent, common, *command);
  return {app, [=, &common] { run_balance(*command, common); }};
}

} // namespace noether
