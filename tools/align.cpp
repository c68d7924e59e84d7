// align: what a checkpoint's attention prefers, and what its symmetries conserve.
#include "align/subcommands.h"

#include "models/memory.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

int main(int argc, char** argv) {
  using namespace noether;
  CLI::App app{"What a checkpoint's attention prefers, and what its symmetries conserve.", "align"};
  Common common;
  add_common(app, common,
             "Example: noether align tokens model.h5 --top 20\n"
             "         noether align enrich model.h5 --significant 0.01\n"
             "         noether align balance start.h5 model.h5");
  const std::vector<Subcommand> subcommands{
      tokens_subcommand(app, common),   positions_subcommand(app, common), enrich_subcommand(app, common),
      score_subcommand(app, common),    compare_subcommand(app, common),   correlate_subcommand(app, common),
      momentum_subcommand(app, common), balance_subcommand(app, common),
  };
  return run_tool(app, argc, argv, common, [&] {
    models::keep_freed_memory();
    at::set_num_threads(common.thread_count());
    try {
      run_subcommand(subcommands);
    } catch (const c10::Error& error) {
      throw Error("{}", error.what_without_backtrace());
    }
  });
}
