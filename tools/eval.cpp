// eval: what a checkpoint does on data: its loss on a validation set, the text that it writes, its sharpness, and how
// it goes on where something is asked.
#include "eval/subcommands.h"

#include "models/memory.h"

int main(int argc, char** argv) {
  using namespace noether;
  CLI::App app{"What a checkpoint does on data: its loss on held-out text, the text that it writes, its sharpness, and "
               "how it goes on where something is asked.",
               "eval"};
  Common common;
  add_common(app, common,
             "Example: noether eval loss model.h5 valid.h5\n"
             "         noether eval generate model.h5 --prompt 'In the beginning'\n"
             "         noether eval sharpness model.h5 train.h5\n"
             "         noether eval puzzles model.h5");
  const std::vector<Subcommand> subcommands{
      loss_subcommand(app, common),    generate_subcommand(app, common), sharpness_subcommand(app, common),
      puzzles_subcommand(app, common), choices_subcommand(app, common),  last_word_subcommand(app, common),
  };
  return run_tool(app, argc, argv, common, [&] {
    models::keep_freed_memory();
    run_subcommand(subcommands);
  });
}
