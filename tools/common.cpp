// The command line's conventions, once for all programs. CLI11 parses; what it lacks is here: its exit statuses are 100
// to 127, it suggests nothing, takes nan and inf as numbers, and refuses 1e3, 4k and underscores in names.
#include "common.h"

#include "base/number.h"
#include "base/threads.h"
#include "base/version.h"
#include "store/table_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <set>

namespace noether {
namespace {

/// All long and short names that are legal where `app` was left: its own, its chosen subcommands' and its parents'.
void collect_options(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  for (const CLI::App* chosen : app.get_subcommands()) collect_options(*chosen, names);
}

/// The innermost subcommand that was chosen.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

/// --kv_heads means --kv-heads; what follows a lone -- or an equals sign is left alone.
std::string with_hyphens(std::string argument) {
  if (argument.size() > 2 && argument.starts_with("--"))
    std::replace(argument.begin(),
                 argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '_',
                 '-');
  return argument;
}

[[noreturn]] void explain_extras(const CLI::App& app, const std::string& extra) {
  if (extra.size() > 1 && extra[0] == '-') {
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string> names;
    collect_options(app, names);
    throw UsageError("unknown option {}{}", name, did_you_mean(name, names));
  }
  const CLI::App& at = innermost(app);
  std::vector<std::string> commands;
  for (const CLI::App* command : at.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  if (!commands.empty()) throw UsageError("unknown subcommand {}{}", extra, did_you_mean(extra, commands));
  throw UsageError("one argument too many: {}", extra);
}

/// CLI11's help in our words: programs are run as `noether NAME`, and a flag's opposite is named without CLI11's mark
/// for it.
struct HelpFormatter : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string name = app->get_name();
    for (const CLI::App* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent())
      name = parent->get_name() + " " + name;
    return CLI::Formatter::make_usage(app, "noether " + name);
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const std::string mark = "{false}";
    for (std::size_t at = name.find(mark); at != std::string::npos; at = name.find(mark)) name.erase(at, mark.size());
    return name;
  }
};

std::string lowered_first(std::string text) {
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
      std::isupper(static_cast<unsigned char>(text[1])) == 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Parses; false when --help or --version was asked for and has been answered.
bool parse(CLI::App& app, int argc, char** argv, Common& common) {
  common.program = app.get_name();
  std::vector<std::string> arguments;
  bool names = true;
  for (int i = 1; i < argc; ++i) {
    common.arguments.emplace_back(argv[i]);
    names = names && common.arguments.back() != "--";
    arguments.push_back(names ? with_hyphens(argv[i]) : argv[i]);
  }
  std::reverse(arguments.begin(), arguments.end()); // CLI11 takes them from the end
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::fputs(innermost(app).help().c_str(), stdout);
    return false;
  } catch (const CLI::CallForVersion& version) {
    std::fputs((std::string(version.what()) + "\n").c_str(), stdout);
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining(true);
    explain_extras(app, extras.empty() ? "" : extras.front());
  } catch (const CLI::ParseError& error) {
    const std::string text = error.what(), twice = ": At Most 1 required but received ";
    if (const std::size_t at = text.find(twice); at != std::string::npos)
      throw UsageError("{} is given {} times", text.substr(0, at), text.substr(at + twice.size()));
    throw UsageError("{}", lowered_first(text));
  }
  if (common.quiet && common.verbose) throw UsageError("--quiet and --verbose contradict each other");
  if (common.seed_text == "random") {
    std::random_device device;
    common.seed = std::uint64_t{device()} << 32 | device();
    Reporter(common.program, common.verbosity()).message(fmt::format("--seed {}", common.seed));
  } else {
    common.seed = static_cast<std::uint64_t>(*parse_count(common.seed_text));
  }
  return true;
}

void complain(const CLI::App& app, std::string_view text) {
  std::fputs(fmt::format("noether {}: {}\n", app.get_name(), text).c_str(), stderr);
}

/// A full disk may only show when the last buffer goes.
void close_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw Error("stdout: {}", system_reason(errno));
}

/// What --version says; made when asked for.
std::string version_text() {
  std::string features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") != 0) features += " avx2";
  if (__builtin_cpu_supports("avx512f") != 0) features += " avx512f";
#endif
  return fmt::format("noether {}\nfmt {}.{}, CLI11 {}\nprocessors in use: {}; features:{}", kVersion,
                     FMT_VERSION / 10000, FMT_VERSION / 100 % 100, CLI11_VERSION, usable_processors(),
                     features.empty() ? " none" : features);
}

} // namespace

Verbosity Common::verbosity() const {
  return quiet ? Verbosity::quiet : verbose ? Verbosity::verbose : Verbosity::normal;
}

ProgressMode Common::progress_mode() const {
  return progress == "yes" ? ProgressMode::yes : progress == "no" ? ProgressMode::no : ProgressMode::automatic;
}

int Common::thread_count() const { return threads > 0 ? threads : usable_processors(); }

TableFormat Common::table_format() const {
  if (json) return TableFormat::json;
  return output == "-" && isatty(STDOUT_FILENO) != 0 ? TableFormat::aligned : TableFormat::tsv;
}

void add_common(CLI::App& app, Common& common, const std::string& example) {
  app.footer(example);
  app.fallthrough();
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  app.formatter(formatter);
  app.set_help_flag("-h,--help", "Show this help");
  app.set_version_flag("--version", version_text, "Show the version, libraries and processor features");
  app.add_flag("-q,--quiet", common.quiet, "Say nothing but errors");
  app.add_flag("-v,--verbose", common.verbose, "Say more");
  add_choice(app, "--progress", common.progress, {"auto", "yes", "no"}, "Whether progress is shown");
}

void add_output(CLI::App& app, Common& common, const std::string& what) {
  app.add_option("-o,--output", common.output, what + "; a file is replaced whole or not at all")
      ->type_name("FILE")
      ->capture_default_str();
}

void add_threads(CLI::App& app, Common& common) {
  app.add_option_function<std::string>(
         "-j,--threads",
         [&common](const std::string& text) {
           const auto count = parse_count(text);
           if (!count || *count < 0 || *count > 4096)
             throw CLI::ValidationError("--threads", fmt::format("expected a number from 0 to 4096, found {}", text));
           common.threads = static_cast<int>(*count);
         },
         "Threads in all; 0: all that may be used")
      ->type_name("N")
      ->default_str("0");
}

void add_seed(CLI::App& app, Common& common) {
  app.add_option("--seed", common.seed_text, "The same seed gives the same bytes; `random` draws one and says it")
      ->type_name("N")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const auto value = parse_count(text);
        return text == "random" || (value && *value >= 0)
                   ? std::string()
                   : fmt::format("expected a whole number, or random; found {}", text);
      });
}

void add_json(CLI::App& app, Common& common) { app.add_flag("--json", common.json, "One JSON object a line"); }

void add_zstd(CLI::App& app, Common& common) {
  app.add_option_function<std::string>(
         "-z,--zstd",
         [&common](const std::string& text) {
           const auto level = text.empty() ? std::optional<std::int64_t>(3) : parse_count(text);
           if (!level || *level < 1 || *level > 19)
             throw CLI::ValidationError("--zstd", fmt::format("expected a level from 1 to 19, found {}", text));
           common.zstd_level = static_cast<int>(*level);
         },
         "Compress the output with zstd; levels 1 to 19, 3 when none is given: -z, -z9")
      ->type_name("[LEVEL]")
      ->expected(0, 1);
}

CLI::Option* add_count(CLI::App& app, const std::string& names, std::int64_t& value, const std::string& description,
                       std::int64_t least, std::int64_t most) {
  return app
      .add_option_function<std::string>(
          names, [&value](const std::string& text) { value = *parse_count(text); }, description)
      ->type_name("N")
      ->default_str(std::to_string(value))
      ->check([least, most](const std::string& text) {
        const auto count = parse_count(text);
        if (count && *count >= least && *count <= most) return std::string();
        if (most == std::numeric_limits<std::int64_t>::max())
          return fmt::format("expected a whole number of at least {}, found {}", least, text);
        return fmt::format("expected a whole number from {} to {}, found {}", least, most, text);
      });
}

CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, const std::string& description,
                      double least, double most, bool open) {
  return app
      .add_option_function<std::string>(
          names, [&value](const std::string& text) { value = *parse_real(text); }, description)
      ->type_name("X")
      ->default_str(fmt::format("{:g}", value))
      ->check([least, most, open](const std::string& text) {
        const auto number = parse_real(text);
        if (number && *number >= least && *number <= most && !(open && *number == least)) return std::string();
        std::string range;
        if (least > -std::numeric_limits<double>::max())
          range += fmt::format(" {} {:g}", open ? "above" : "of at least", least);
        if (most < std::numeric_limits<double>::max())
          range += fmt::format("{} at most {:g}", range.empty() ? "" : " and", most);
        return fmt::format("expected a finite number{}, found {}", range, text);
      });
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description) {
  return app.add_option(names, value, description)
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->capture_default_str()
      ->check([choices](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
        return fmt::format("expected {}, found {}{}", fmt::join(choices, ", "), text, did_you_mean(text, choices));
      });
}

void run_subcommand(const std::vector<Subcommand>& subcommands) {
  // Not CLI11's own check: that comes before a misspelled name is looked at.
  std::string names;
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.app->parsed()) return subcommand.run();
    const bool last = &subcommand == &subcommands.back();
    names += (names.empty() ? "" : last ? " or " : ", ") + subcommand.app->get_name();
  }
  throw UsageError("expected a subcommand: {}", names);
}

int run_tool(CLI::App& app, int argc, char** argv, Common& common, const std::function<void()>& work) try {
  if (parse(app, argc, argv, common)) work();
  close_stdout();
  return kDone;
} catch (const Error& error) {
  complain(app, error.what());
  return error.status();
} catch (const std::bad_alloc&) {
  complain(app, "out of memory");
  return kFailed;
} catch (const std::exception& error) {
  complain(app, error.what());
  return kFailed;
}

store::ProvenanceRecord provenance_record(const Common& common, bool seeded,
                                          std::vector<store::ProvenanceRecord::Input> inputs) {
  store::ProvenanceRecord record;
  record.tool = common.program;
  record.arguments = common.arguments;
  if (seeded) record.seed = common.seed;
  record.inputs = std::move(inputs);
  return record;
}

std::string shared_file(const std::string& name) {
  std::error_code failed; // the path is then "share/noether/...", and whoever opens it says that it is not there
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed); // in libexec/noether
  return (self.parent_path().parent_path().parent_path() / "share/noether" / name).string();
}

TextOutput::TextOutput(const std::string& path) : path_(path) {
  if (path != "-") file_.emplace(path);
}

void TextOutput::write(std::string_view text) {
  if (file_)
    file_->write(text);
  else
    store::write_all(STDOUT_FILENO, text.data(), text.size(), "stdout");
}

void TextOutput::collect(std::vector<Column> columns, std::vector<std::string> provenance) {
  columns_ = std::move(columns);
  provenance_ = std::move(provenance);
}

void TextOutput::close() {
  if (!columns_.empty()) {
    file_.reset(); // it has shown that the path can be written
    store::OutputStream output(path_);
    output.write(store::table_file(columns_, rows_), provenance_);
    output.close();
    return;
  }
  if (file_) file_->commit();
}

TableWriter table_writer(std::vector<Column> columns, const Common& common, TextOutput& output) {
  if (output.path().ends_with(".h5")) {
    if (common.json) throw UsageError("--json has no effect with -o {}, an HDF5 file", output.path());
    output.collect(columns, store::extend_provenance({}, provenance_record(common, false)));
    return {std::move(columns), [&output](const std::vector<Cell>& cells) { output.row(cells); }};
  }
  return {std::move(columns), common.table_format(), [&output](std::string_view line) { output.write(line); }};
}

} // namespace noether
