#include "evaluation/score.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace noether::evaluation {
namespace {

TEST(Window, FollowEachOtherWhereTheStrideIsTheWindow) {
  // Ten targets, windows of four: 0-3, 4-7, 8-9.
  ASSERT_EQ(window_count(10, 4, 4), 3);
  const Window last = window_at(2, 10, 4, 4);
  EXPECT_EQ(last.begin, 8);
  EXPECT_EQ(last.end, 10);
  EXPECT_EQ(last.scored, 8);
}

TEST(Window, ScoresItsLastTokensOnlyWhereTheyOverlap) {
  // Ten targets, windows of six, stride three: 0-5, then 3-8 scoring 6-8, then 6-9 scoring 9.
  ASSERT_EQ(window_count(10, 6, 3), 3);
  const Window middle = window_at(1, 10, 6, 3), last = window_at(2, 10, 6, 3);
  EXPECT_EQ(middle.begin, 3);
  EXPECT_EQ(middle.end, 9);
  EXPECT_EQ(middle.scored, 6);
  EXPECT_EQ(last.begin, 6);
  EXPECT_EQ(last.end, 10);
  EXPECT_EQ(last.scored, 9);
}

TEST(Window, EveryTargetIsScoredOnceWithEnoughBeforeIt) {
  for (std::int64_t targets = 1; targets <= 40; ++targets)
    for (std::int64_t window = 1; window <= 12; ++window)
      for (std::int64_t stride = 1; stride <= window; ++stride) {
        std::int64_t next = 0;
        for (std::int64_t k = 0; k < window_count(targets, window, stride); ++k) {
          const Window at = window_at(k, targets, window, stride);
          ASSERT_EQ(at.scored, next) << targets << " targets, window " << window << ", stride " << stride;
          ASSERT_LT(at.scored, at.end);
          ASSERT_LE(at.end - at.begin, window);
          ASSERT_GE(at.scored - at.begin, std::min(window - stride, at.scored));
          next = at.end;
        }
        ASSERT_EQ(next, targets);
      }
}

TEST(RatioEstimate, IsCochransFormula) {
  const Random random(7, Purpose::kSample);
  std::vector<double> y, x;
  RatioEstimate estimate;
  for (std::uint64_t i = 0; i < 100; ++i) {
    x.push_back(1 + static_cast<double>(random.below(2 * i, 50)));
    y.push_back(x.back() * (4 + random.normal(1000 + 2 * i)));
    estimate.add(y.back(), x.back());
  }
  const double total = std::accumulate(x.begin(), x.end(), 0.0);
  const double ratio = std::accumulate(y.begin(), y.end(), 0.0) / total;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += std::pow(y[i] - ratio * x[i], 2);
  EXPECT_DOUBLE_EQ(estimate.ratio(), ratio);
  EXPECT_NEAR(*estimate.standard_error(), std::sqrt(squares / (100.0 * 99)) / (total / 100), 1e-12);
}

// With units of equal size it is the standard error of a mean: of 1, 2, 3, 4 that is sqrt(5/3) / 2.
TEST(RatioEstimate, OfEqualUnitsIsTheStandardErrorOfAMean) {
  RatioEstimate estimate;
  for (const double y : {1.0, 2.0, 3.0, 4.0}) estimate.add(10 * y, 10);
  EXPECT_NEAR(*estimate.standard_error(), std::sqrt(5.0 / 3) / 2, 1e-14);
}

// The spread of 4000 estimates is what the formula says: a sample's deviation is within 4 / sqrt(8000) of it.
TEST(RatioEstimate, SaysHowMuchEstimatesSpread) {
  constexpr int kTrials = 4000;
  const Random random(11, Purpose::kSample);
  std::uint64_t draw = 0;
  double sum = 0, squares = 0, variance = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    RatioEstimate estimate;
    for (int i = 0; i < 200; ++i) {
      const double x = 1 + static_cast<double>(random.below(draw++, 20));
      // Documents differ in their mean, tokens within them do not: the case that a per-token error gets wrong.
      estimate.add(x * (4 + random.normal(1'000'000'000 + draw++)), x);
    }
    sum += estimate.ratio();
    squares += estimate.ratio() * estimate.ratio();
    variance += std::pow(*estimate.standard_error(), 2);
  }
  const double found = std::sqrt(squares / kTrials - std::pow(sum / kTrials, 2));
  EXPECT_NEAR(std::sqrt(variance / kTrials) / found, 1, 4 / std::sqrt(2.0 * kTrials));
}

TEST(RatioEstimate, HasNoErrorForOneUnit) {
  RatioEstimate estimate;
  estimate.add(3, 2);
  EXPECT_DOUBLE_EQ(estimate.ratio(), 1.5);
  EXPECT_FALSE(estimate.standard_error());
}

/// Losses of 0, 1, 2, ... over documents of `length` tokens.
LossSums ramp(std::int64_t targets, std::uint64_t length, std::vector<std::uint64_t>& documents) {
  for (std::uint64_t begin = 0; begin < static_cast<std::uint64_t>(targets); begin += length)
    documents.push_back(begin);
  documents.push_back(static_cast<std::uint64_t>(targets));
  LossSums sums(targets, 0, documents);
  for (std::int64_t i = 0; i < targets; ++i) sums.add(static_cast<double>(i), 3);
  sums.finish();
  return sums;
}

TEST(LossSums, TakesDocumentsWhereThereAreThirtyAndBlocksElse) {
  std::vector<std::uint64_t> thirty, few;
  const LossSums documents = ramp(3000, 100, thirty);
  EXPECT_TRUE(documents.over_documents());
  EXPECT_EQ(documents.units(), 30);
  const LossSums blocks = ramp(2900, 100, few);
  EXPECT_FALSE(blocks.over_documents());
  EXPECT_EQ(blocks.units(), 64); // of 46 tokens, the last of 2
  EXPECT_DOUBLE_EQ(blocks.loss(), 2899 / 2.0);
}

TEST(LossSums, LeavesOutEmptyDocumentsAndThoseBeyondTheTargets) {
  std::vector<std::uint64_t> documents{0, 1, 1, 1}; // the first holds the token that is not scored
  for (std::uint64_t i = 1; i <= 50; ++i) documents.push_back(1 + 2 * i);
  LossSums sums(80, 1, documents);
  for (int i = 0; i < 80; ++i) sums.add(i % 2, 1);
  sums.finish();
  EXPECT_TRUE(sums.over_documents());
  EXPECT_EQ(sums.units(), 40);
  EXPECT_NEAR(*sums.standard_error(), 0, 1e-9); // each document holds a 0 and a 1
}

TEST(LossSums, LeastBatchCountsWholeBatchesOnly) {
  std::vector<std::uint64_t> documents;
  // Batches begin at 0 and 4096; the mean of the first is 4095 / 2.
  EXPECT_DOUBLE_EQ(*ramp(10000, 100, documents).min_batch_4096(), 4095 / 2.0);
  documents.clear();
  EXPECT_FALSE(ramp(4095, 100, documents).min_batch_4096());
}

TEST(LossSums, BitsPerByteDividesByTheTextOnly) {
  LossSums sums(3, 0, {});
  sums.add(std::log(2.0), 2);
  sums.add(std::log(4.0), 0); // end-of-text
  sums.add(std::log(2.0), 2);
  sums.finish();
  EXPECT_DOUBLE_EQ(*sums.bits_per_byte(), 1); // 4 bits over 4 bytes
  LossSums nothing(1, 0, {});
  nothing.add(1, 0);
  nothing.finish();
  EXPECT_FALSE(nothing.bits_per_byte());
}

} // namespace
} // namespace noether::evaluation
