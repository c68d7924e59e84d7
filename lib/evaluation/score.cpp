// Window arithmetic and sums, in double and in the order of the data: the same whatever computed the losses, and how.
#include "evaluation/score.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace noether::evaluation {

std::int64_t window_count(std::int64_t targets, std::int64_t window, std::int64_t stride) {
  if (targets <= 0) return 0;
  return 1 + (std::max<std::int64_t>(targets - window, 0) + stride - 1) / stride;
}

Window window_at(std::int64_t k, std::int64_t targets, std::int64_t window, std::int64_t stride) {
  const std::int64_t begin = k * stride;
  return {begin, std::min(begin + window, targets), k == 0 ? 0 : begin - stride + window};
}

void RatioEstimate::add(double y, double x) {
  ++units_;
  y_ += y;
  x_ += x;
  yy_ += y * y;
  xy_ += x * y;
  xx_ += x * x;
}

std::optional<double> RatioEstimate::standard_error() const {
  if (units_ < 2) return std::nullopt;
  const double n = static_cast<double>(units_), r = ratio();
  // Rounding may leave a small negative number where all units agree.
  const double squares = std::max(0.0, yy_ - 2 * r * xy_ + r * r * xx_);
  return std::sqrt(n / (n - 1) * squares) / x_;
}

LossSums::LossSums(std::int64_t targets, std::int64_t first, std::span<const std::uint64_t> documents)
    : first_(first), documents_(documents), block_((targets + kBlocks - 1) / kBlocks) {
  const auto begin = static_cast<std::uint64_t>(first), end = static_cast<std::uint64_t>(first + targets);
  std::int64_t holding = 0;
  for (std::size_t i = 0; i + 1 < documents.size() && holding < kFewestDocuments && documents[i] < end; ++i)
    if (std::max(documents[i], begin) < documents[i + 1]) ++holding;
  over_documents_ = holding >= kFewestDocuments;
}

void LossSums::add(double loss, std::int64_t bytes) {
  if (tokens_ >= unit_end_) {
    end_unit();
    if (over_documents_) {
      do ++document_;
      while (static_cast<std::int64_t>(documents_[document_]) - first_ <= tokens_); // empty documents
      unit_end_ = static_cast<std::int64_t>(documents_[document_]) - first_;
    } else {
      unit_end_ += block_;
    }
  }
  ++tokens_;
  bytes_ += bytes;
  total_ += loss;
  ++unit_tokens_;
  unit_loss_ += loss;
  batch_loss_ += loss;
  if (++batch_tokens_ == kBatch) {
    const double mean = batch_loss_ / static_cast<double>(kBatch);
    least_batch_ = least_batch_ ? std::min(*least_batch_, mean) : mean;
    batch_tokens_ = 0;
    batch_loss_ = 0;
  }
}

void LossSums::finish() { end_unit(); }

void LossSums::end_unit() {
  if (unit_tokens_ > 0) units_.add(unit_loss_, static_cast<double>(unit_tokens_));
  unit_tokens_ = 0;
  unit_loss_ = 0;
}

std::optional<double> LossSums::bits_per_byte() const {
  if (bytes_ == 0) return std::nullopt;
  return total_ / std::numbers::ln2 / static_cast<double>(bytes_);
}

} // namespace noether::evaluation
