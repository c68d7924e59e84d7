#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace noether;

// Known answers that the generator's authors publish with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheAuthorsKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDifferInEveryPartOfTheirName) {
  const auto first = Random(1, Purpose::kBias, 2, 3).bits(4);
  EXPECT_EQ(first, Random(1, Purpose::kBias, 2, 3).bits(4));
  EXPECT_NE(first, Random(2, Purpose::kBias, 2, 3).bits(4));
  EXPECT_NE(first, Random(1, Purpose::kBatch, 2, 3).bits(4));
  EXPECT_NE(first, Random(1, Purpose::kBias, 3, 3).bits(4));
  EXPECT_NE(first, Random(1, Purpose::kBias, 2, 4).bits(4));
  EXPECT_NE(first, Random(1, Purpose::kBias, 2, 3).bits(5));
  EXPECT_NE(first, Random(std::uint64_t{1} << 32 | 1, Purpose::kBias, 2, 3).bits(4)); // the high half counts too
}

// The bounds are five standard errors: these seeds are fixed, so the test always gives the same answer.
TEST(Random, NormalHasItsFirstFourMoments) {
  const Random random(7, Purpose::kInitialise);
  constexpr std::uint64_t kCount = 200'000;
  double sums[5] = {};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = random.normal(i);
    double power = 1;
    for (double& sum : sums) sum += power, power *= x;
  }
  const auto moment = [&](int k) { return sums[k] / kCount; };
  const auto error = [](double variance) { return 5 * std::sqrt(variance / kCount); };
  EXPECT_NEAR(moment(1), 0, error(1));
  EXPECT_NEAR(moment(2), 1, error(2));
  EXPECT_NEAR(moment(3), 0, error(15));
  EXPECT_NEAR(moment(4), 3, error(96));
}

TEST(Random, FillNormalIsNormalWhereverItBegins) {
  const Random random(3, Purpose::kBias, 1, 2);
  for (const std::uint64_t begin : {0u, 1u, 6u, 7u}) {
    std::vector<float> filled(9);
    random.fill_normal(filled.data(), begin, filled.size(), 0.5, 2);
    for (std::uint64_t i = 0; i < filled.size(); ++i)
      EXPECT_EQ(filled[i], static_cast<float>(0.5 + 2 * random.normal(begin + i))) << begin << " " << i;
  }
}

TEST(Random, BelowCoversItsRangeEvenly) {
  const Random random(5, Purpose::kBatch);
  std::vector<int> counts(10);
  for (std::uint64_t i = 0; i < 100'000; ++i) ++counts[random.below(i, 10)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(100'000 * 0.1 * 0.9));
  EXPECT_EQ(random.below(0, 1), 0u);
}
