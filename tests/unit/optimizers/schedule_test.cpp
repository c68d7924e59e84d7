#include "base/error.h"
#include "optimizers/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace noether::optimizers {
namespace {

TEST(Schedule, WarmsUpInAStraightLineWhateverFollows) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::wsd}) {
    const Schedule schedule{.kind = kind, .warmup = 4, .final_fraction = 0.1, .decay_steps = 3};
    for (std::uint64_t step = 0; step < 4; ++step)
      EXPECT_DOUBLE_EQ(lr_factor(schedule, step, 100), static_cast<double>(step + 1) / 4);
    EXPECT_EQ(lr_factor(schedule, 4, 100), 1);
  }
}

TEST(Schedule, ConstantStays) {
  for (const std::uint64_t step : {0u, 7u, 99u, 1000u}) EXPECT_EQ(lr_factor({}, step, 100), 1);
}

TEST(Schedule, CosineIsHalfAWave) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .warmup = 20, .final_fraction = 0.1};
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 70, 120), 0.55); // half way: the middle of 1 and 0.1
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 45, 120), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 120, 120), 0.1);
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 500, 120), 0.1);
  for (std::uint64_t step = 21; step < 120; ++step)
    EXPECT_LT(lr_factor(schedule, step, 120), lr_factor(schedule, step - 1, 120));
}

TEST(Schedule, WsdStaysAndThenFallsInAStraightLine) {
  const Schedule schedule{.kind = ScheduleKind::wsd, .warmup = 5, .final_fraction = 0.2, .decay_steps = 10};
  EXPECT_EQ(lr_factor(schedule, 90, 100), 1);
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 95, 100), 0.6);
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 99, 100), 1 - 0.9 * 0.8);
  EXPECT_DOUBLE_EQ(lr_factor(schedule, 100, 100), 0.2);
  // A longer run is on the plateau where a shorter one ended: that is what the schedule is for.
  EXPECT_EQ(lr_factor(schedule, 99, 200), 1);
}

TEST(Schedule, HasNoHolesWhereNumbersAreSmall) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::wsd})
    for (std::uint64_t warmup = 0; warmup < 5; ++warmup)
      for (std::uint64_t decay = 0; decay < 5; ++decay)
        for (std::uint64_t total = 0; total < 5; ++total)
          for (std::uint64_t step = 0; step < 6; ++step) {
            const double factor =
                lr_factor({.kind = kind, .warmup = warmup, .final_fraction = 0.5, .decay_steps = decay}, step, total);
            EXPECT_TRUE(factor > 0 && factor <= 1)
                << name_of(kind) << warmup << decay << total << step << ' ' << factor;
          }
}

TEST(Schedule, SaysWhatItIs) {
  EXPECT_EQ(describe({}, 100), "constant");
  EXPECT_EQ(describe({.kind = ScheduleKind::cosine, .warmup = 10, .final_fraction = 0.1}, 100),
            "cosine to 0.1 of the rate at step 100, after 10 steps of warm-up");
  EXPECT_EQ(describe({.kind = ScheduleKind::wsd, .decay_steps = 20}, 100),
            "wsd, from step 80 on down to 0 of the rate at step 100");
  EXPECT_THROW(schedule_of("cosin"), UsageError);
}

} // namespace
} // namespace noether::optimizers
