#include "eval/subcommands.h"

#include <algorithm>
#include <limits>

namespace noether {

namespace {

/// CLI11 would say the inputs twice.
class InputsHelp : public CLI::Formatter {
public:
  InputsHelp(std::string subcommand, std::string data) : subcommand_(std::move(subcommand)), data_(std::move(data)) {
    column_width(34);
  }
  std::string make_usage(const CLI::App*, std::string) const override {
    return fmt::format("Usage: noether eval {} [OPTIONS] CHECKPOINT... {}\n", subcommand_, data_);
  }

private:
  std::string subcommand_, data_;
};

} // namespace

std::string shown(const std::string& digest, const Common& common) {
  return common.json ? digest : digest.substr(0, 12);
}

void add_inputs(CLI::App& app, std::vector<std::string>& inputs, const std::string& data,
                const std::string& description) {
  app.formatter(std::make_shared<InputsHelp>(app.get_name(), data));
  app.add_option("inputs", inputs, description)
      ->option_text("CHECKPOINT... " + data)
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
}

store::FileReader open_inputs(std::vector<std::string> inputs, std::vector<Source>& sources) {
  if (inputs.size() < 2)
    throw UsageError("expected a checkpoint and the tokens to score, found {} alone", inputs.front());
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) throw UsageError("only one input can be stdin (-)");
  store::FileReader data = store::open_one(inputs.back());
  inputs.pop_back();
  for (const std::string& path : inputs) {
    sources.push_back({store::InputStream(path), {}});
    if (path != "-") sources.back().first = sources.back().stream.next();
  }
  return data;
}

void for_each_checkpoint(std::vector<Source>& sources, const std::function<void(store::FileReader)>& use) {
  for (Source& source : sources) {
    std::optional<store::FileReader> file = source.first ? std::move(source.first) : source.stream.next();
    for (; file; file = source.stream.next()) use(std::move(*file));
  }
}

} // namespace noether
