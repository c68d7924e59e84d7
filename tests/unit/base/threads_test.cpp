#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace noether;

TEST(ParallelFor, DoesEachIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {0, 1, 3, 16}) {
    std::vector<std::atomic<int>> done(1000);
    parallel_for(1000, threads, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
    for (const auto& count : done) ASSERT_EQ(count, 1) << threads;
  }
  parallel_for(0, 4, [](std::int64_t) { FAIL(); });
}

TEST(ParallelFor, RethrowsWhatAThreadThrew) {
  for (const int threads : {1, 4})
    EXPECT_THROW(parallel_for(100, threads,
                              [](std::int64_t i) {
                                if (i == 57) throw std::runtime_error("57");
                              }),
                 std::runtime_error);
}
