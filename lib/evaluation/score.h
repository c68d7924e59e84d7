// The arithmetic of a validation loss: which window scores which token, and the sums that a row is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace noether::evaluation {

/// One forward pass: the model reads inputs [begin, end) and the targets [scored, end) count.
struct Window {
  std::int64_t begin, end, scored;
};

/// Windows over `targets` predictions, input i predicting target i: window k begins at k * stride, ends `window` later
/// or at the last target, and scores what no window before it did. So every target is scored once, with at least
/// window - stride tokens before it wherever there are as many. 1 <= stride <= window.
std::int64_t window_count(std::int64_t targets, std::int64_t window, std::int64_t stride);
Window window_at(std::int64_t k, std::int64_t targets, std::int64_t window, std::int64_t stride);

/// A ratio of two totals over sampled units (documents) of unequal size, and its standard error.
///
/// R = sum y / sum x;  stderr^2 = n / (n - 1) * sum (y_i - R x_i)^2 / (sum x)^2, for n units.
/// Source: W. G. Cochran, Sampling Techniques, 3rd edition (1977), section 2.11, for a small share of a large
/// population.
class RatioEstimate {
public:
  void add(double y, double x);
  std::int64_t units() const { return units_; }
  double ratio() const { return y_ / x_; }
  /// Nothing for fewer than two units.
  std::optional<double> standard_error() const;

private:
  std::int64_t units_ = 0;
  double y_ = 0, x_ = 0, yy_ = 0, xy_ = 0, xx_ = 0;
};

/// What the losses of a validation set come to. Tokens are added in the order of the data.
class LossSums {
public:
  /// Target i is token first + i of the data. documents: where each begins in the data, and the end of the last
  /// (borrowed); they are the units of the standard error when at least kFewestDocuments hold targets, else kBlocks
  /// runs of equal length are.
  LossSums(std::int64_t targets, std::int64_t first, std::span<const std::uint64_t> documents);
  /// loss: nats; bytes: of text that the token stands for.
  void add(double loss, std::int64_t bytes);
  /// After the last target.
  void finish();

  static constexpr std::int64_t kFewestDocuments = 30;
  static constexpr std::int64_t kBlocks = 64;
  static constexpr std::int64_t kBatch = 4096;

  std::int64_t tokens() const { return tokens_; }
  std::int64_t bytes() const { return bytes_; }
  double loss() const { return total_ / static_cast<double>(tokens_); } ///< nats a token
  std::optional<double> standard_error() const { return units_.standard_error(); }
  std::int64_t units() const { return units_.units(); }
  bool over_documents() const { return over_documents_; }
  std::optional<double> bits_per_byte() const; ///< nothing when no token stands for text
  /// The least mean over a batch of 4096 consecutive targets; nothing when there is no whole one.
  std::optional<double> min_batch_4096() const { return least_batch_; }

private:
  void end_unit();
  std::int64_t first_;
  std::span<const std::uint64_t> documents_;
  bool over_documents_;
  std::int64_t block_;        ///< targets in a block
  std::size_t document_ = 0;  ///< whose end is unit_end_
  std::int64_t unit_end_ = 0; ///< the first target beyond the current unit
  std::int64_t unit_tokens_ = 0, batch_tokens_ = 0, tokens_ = 0, bytes_ = 0;
  double unit_loss_ = 0, batch_loss_ = 0, total_ = 0;
  RatioEstimate units_;
  std::optional<double> least_batch_;
};

} // namespace noether::evaluation
