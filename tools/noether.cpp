// `noether NAME ...` runs the program NAME of libexec/noether/, as git does. init, eval and train are names that a
// system may already use, so the programs are not on the PATH themselves.
#include "base/error.h"
#include "base/version.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

struct Program {
  const char* name;
  const char* does;
};
constexpr std::array kPrograms{
    Program{"tokenize", "train a byte-level BPE, encode, decode, describe"},
    Program{"init", "a fresh checkpoint of a named or described architecture"},
    Program{"train", "move a checkpoint along the data with an optimizer"},
    Program{"eval", "loss, generation, sharpness, puzzles, multiple choice"},
    Program{"align", "what a checkpoint's attention prefers; conserved quantities"},
    Program{"bifurcate", "the two-factor map of large steps"},
};

void usage(std::FILE* out) {
  std::fputs("noether: small programs for people who study how transformers train\n\n"
             "Usage: noether PROGRAM [options]\n\n",
             out);
  for (const Program& program : kPrograms) std::fprintf(out, "  %-10s %s\n", program.name, program.does);
  std::fputs("\n`noether PROGRAM --help` shows a program's options, `noether help PROGRAM` its manual page.\n"
             "Example: noether tokenize train --vocab-size 4096 corpus.txt > bpe.h5\n",
             out);
}

} // namespace

int main(int argc, char** argv) {
  using namespace noether;
  if (argc < 2) {
    usage(stderr);
    return kMisuse;
  }
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || (name == "help" && argc == 2)) {
    usage(stdout);
    return kDone;
  }
  if (name == "--version") {
    std::printf("noether %s\n", kVersion);
    return kDone;
  }
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path prefix = self.parent_path().parent_path();

  std::vector<std::string> names;
  for (const Program& program : kPrograms) names.emplace_back(program.name);
  const std::string wanted = name == "help" ? argv[2] : name;
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    std::fprintf(stderr, "noether: no program %s%s\n", wanted.c_str(), did_you_mean(wanted, names).c_str());
    return kMisuse;
  }
  if (name == "help") {
    const std::string installed = (prefix / "share/man/man1" / ("noether-" + wanted + ".1")).string();
    const std::string page = std::filesystem::exists(installed) ? installed : "noether-" + wanted;
    execlp("man", "man", page.c_str(), nullptr);
    std::fprintf(stderr, "noether: man: %s\n", system_reason(errno).c_str());
    return kFailed;
  }
  // LibTorch's threads wait for each other by spinning, for milliseconds by default: where other programs want the
  // processors too, the one that is waited for does not run meanwhile. A short spin costs nothing else; OpenMP reads it
  // when the program is loaded.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", 0);
  const std::string path = (prefix / "libexec/noether" / name).string();
  execv(path.c_str(), argv + 1);
  std::fprintf(stderr, "noether: %s: %s\n", path.c_str(), system_reason(errno).c_str());
  return kFailed;
}
