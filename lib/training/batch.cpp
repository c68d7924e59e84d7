#include "training/batch.h"

#include "base/error.h"

#include <algorithm>

namespace noether::training {
namespace {

void check_length(const text::TokenFile& file, std::int64_t context) {
  if (file.size() < static_cast<std::uint64_t>(context) + 1)
    throw Error("{}: {} tokens, fewer than the {} that a context of {} needs (see --context)", file.name(), file.size(),
                context + 1, context);
}

std::vector<std::uint64_t> sizes_of(const std::vector<text::TokenFile>& files, std::int64_t context) {
  std::vector<std::uint64_t> sizes;
  for (const text::TokenFile& file : files) {
    check_length(file, context);
    sizes.push_back(file.size());
  }
  return sizes;
}

Batch empty_batch(std::int64_t rows, std::int64_t context) {
  const auto count = static_cast<std::size_t>(rows * context);
  return {.rows = rows,
          .context = context,
          .tokens = std::vector<std::int64_t>(count),
          .targets = std::vector<std::int64_t>(count)};
}

void read_row(const text::TokenFile& file, const Window& window, Batch& batch, std::int64_t row) {
  std::vector<std::int64_t> read(static_cast<std::size_t>(batch.context) + 1);
  file.read(window.begin, read.size(), read.data());
  std::copy(read.begin(), read.end() - 1, batch.tokens.begin() + row * batch.context);
  const auto target = batch.targets.begin() + row * batch.context;
  std::copy(read.begin() + 1, read.end(), target);
  std::fill(target, target + window.skip, -1);
  batch.counted += batch.context - window.skip;
}

/// How Windows counts one window an example.
std::vector<std::uint64_t> counts_of(const std::vector<Examples>& files) {
  std::vector<std::uint64_t> counts;
  for (const Examples& file : files) counts.push_back(file.examples.size() + 1);
  return counts;
}

/// What is predicted is the end of each; behind it a row is filled up.
Batch batch_of(const std::vector<const Example*>& rows) {
  std::int64_t context = 0;
  for (const Example* row : rows) context = std::max(context, static_cast<std::int64_t>(row->ids.size()) - 1);
  Batch batch = empty_batch(static_cast<std::int64_t>(rows.size()), context);
  std::fill(batch.targets.begin(), batch.targets.end(), -1);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<std::int64_t>& ids = rows[row]->ids;
    const auto begin = static_cast<std::ptrdiff_t>(row) * context;
    const std::int64_t asked = rows[row]->asked;
    std::copy(ids.begin(), ids.end() - 1, batch.tokens.begin() + begin);
    std::copy(ids.begin() + asked, ids.end(), batch.targets.begin() + begin + asked - 1);
    batch.counted += static_cast<std::int64_t>(ids.size()) - asked;
  }
  return batch;
}

} // namespace

Data::Data(const std::vector<Examples>& examples, const Settings& settings)
    : examples_(&examples), context_(settings.context),
      windows_(counts_of(examples), settings.weights, 1, settings.order, settings.seed) {}

Data::Data(const std::vector<text::TokenFile>& files, const Settings& settings)
    : files_(&files), context_(settings.context),
      windows_(sizes_of(files, settings.context), settings.weights, settings.context, settings.order, settings.seed) {}

double Data::targets_a_window() const {
  if (files_ != nullptr) return static_cast<double>(context_);
  double targets = 0, examples = 0;
  for (const Examples& file : *examples_) {
    targets += static_cast<double>(file.targets());
    examples += static_cast<double>(file.examples.size());
  }
  return targets / examples;
}

Batch Data::batch(std::uint64_t index, std::int64_t rows) const {
  if (examples_ != nullptr) {
    std::vector<const Example*> taken;
    for (std::int64_t row = 0; row < rows; ++row) {
      const Window window = windows_.at(index + static_cast<std::uint64_t>(row));
      taken.push_back(&(*examples_)[window.file].examples[window.begin]);
    }
    return batch_of(taken);
  }
  Batch batch = empty_batch(rows, context_);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Window window = windows_.at(index + static_cast<std::uint64_t>(row));
    read_row((*files_)[window.file], window, batch, row);
  }
  return batch;
}

Batch validation_batch(const text::TokenFile& file, std::int64_t context, std::int64_t tokens) {
  check_length(file, context);
  const auto all = static_cast<std::int64_t>((file.size() - 1) / static_cast<std::uint64_t>(context));
  const std::int64_t rows = std::clamp<std::int64_t>(tokens / context, 1, all);
  Batch batch = empty_batch(rows, context);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t number = row * all / rows;
    read_row(file, {.begin = static_cast<std::uint64_t>(number * context)}, batch, row);
  }
  return batch;
}

Batch validation_batch(const Examples& examples, std::int64_t tokens) {
  const auto all = static_cast<std::int64_t>(examples.examples.size());
  const double share = static_cast<double>(tokens) / static_cast<double>(examples.targets());
  const std::int64_t rows =
      share >= 1 ? all : std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(all)));
  std::vector<const Example*> taken;
  for (std::int64_t row = 0; row < rows; ++row)
    taken.push_back(&examples.examples[static_cast<std::size_t>(row * all / rows)]);
  return batch_of(taken);
}

void check_tokenizer(const text::TokenFile& file, const text::Tokenizer* tokenizer, std::int64_t vocab_size,
                     const std::string& checkpoint_name) {
  if (tokenizer != nullptr) {
    const std::string own = text::digest(*tokenizer);
    if (own != file.tokenizer_digest())
      throw Error("{}: its tokens were made by tokenizer {}, {} has {}", file.name(), file.tokenizer_digest(),
                  checkpoint_name, own);
  } else if (file.tokenizer().vocab_size() > vocab_size) {
    throw Error("{}: a vocabulary of {}, {} has {}", file.name(), file.tokenizer().vocab_size(), checkpoint_name,
                vocab_size);
  }
}

} // namespace noether::training
