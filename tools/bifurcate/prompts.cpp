// bifurcate prompts. Prompts for a linear transformer.
#include "bifurcate/subcommands.h"

#include "regression/prompts.h"
#include "store/writer.h"

#include <cerrno>
#include <fstream>
#include <iostream>

namespace noether {

namespace {

struct PromptsCommand {
  regression::PromptOptions options;
  std::string file;
};

CLI::App* add_prompts(CLI::App& app, Common& common, PromptsCommand& command) {
  CLI::App* prompts = app.add_subcommand("prompts", "Prompts for a linear transformer, drawn or from text");
  prompts->footer(
      "Of text each line is a pair, the components of x and then y; the last line of a prompt is the query with its\n"
      "target, and an empty line is between prompts.\n"
      "Example: printf '1 1\\n1 1\\n' | noether bifurcate prompts - > one.h5\n"
      "         noether bifurcate prompts --count 64 --dimension 4 --noise 0.1 > prompts.h5\n"
      "         noether init linear-transformer --dimension 4 | noether train - prompts.h5 --lr 2 --steps 500 > "
      "model.h5");
  prompts->add_option("file", command.file, "Pairs as text, or - for stdin; without it prompts are drawn")
      ->type_name("FILE");
  add_count(*prompts, "--count", command.options.count, "Prompts", 1, 1 << 24);
  add_count(*prompts, "--pairs", command.options.pairs, "Pairs of each", 1, 1 << 20);
  add_count(*prompts, "--dimension", command.options.dimension, "Components of an x", 1, 4096);
  add_real(*prompts, "--noise", command.options.noise, "Standard deviation of the noise of y", 0);
  add_seed(*prompts, common);
  add_output(*prompts, common, "Where the prompts go");
  return prompts;
}

void run_prompts(PromptsCommand& command, const CLI::App& app, const Common& common) {
  for (const char* option : {"--count", "--pairs", "--dimension", "--noise", "--seed"})
    if (!command.file.empty() && app.count(option) > 0)
      throw UsageError("{} has no effect on prompts from text", option);
  command.options.seed = common.seed;
  store::OutputStream output(common.output);
  const regression::Prompts prompts = [&] {
    if (command.file.empty()) return regression::draw_prompts(command.options);
    if (command.file == "-") return regression::parse_prompts(std::cin, "stdin");
    std::ifstream text(command.file);
    if (!text) throw Error("{}: {}", command.file, system_reason(errno));
    return regression::parse_prompts(text, command.file);
  }();
  output.write(to_file(prompts), {to_json(provenance_record(common, command.file.empty()))});
  output.close();
}

} // namespace

Subcommand prompts_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<PromptsCommand>();
  CLI::App* app = add_prompts(parent, common, *command);
  return {app, [=, &common] { run_prompts(*command, *app, common); }};
}

} // namespace noether
