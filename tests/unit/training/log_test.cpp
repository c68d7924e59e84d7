#include "training/log.h"

#include "base/error.h"
#include "small.h"

#include <fstream>
#include <sstream>

namespace noether::training {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
LogRow row(std::uint64_t step) {
  LogRow row{.step = step,
             .tokens = 10 * step,
             .loss = 3.25,
             .smoothed_loss = 3.5,
             .learning_rate = 0.1,
             .gradient_norm = 2,
             .seconds = static_cast<double>(step) / 2,
             .tokens_per_second = 20,
             .valid_loss = {}};
  if (step == 2) row.valid_loss = 3.75;
  return row;
}
constexpr const char* kHeader =
    "step\ttokens\tloss\tsmoothed_loss\tlearning_rate\tgradient_norm\tseconds\ttokens_per_second\tvalid_loss\n";
constexpr const char* kRows[] = {"1\t10\t3.25\t3.5\t0.1\t2\t0.5\t20\t\n", "2\t20\t3.25\t3.5\t0.1\t2\t1\t20\t3.75\n",
                                 "3\t30\t3.25\t3.5\t0.1\t2\t1.5\t20\t\n"};

TEST(Log, GoesOnAfterTheStepThatWasSaved) {
  const Folder folder;
  const std::string path = folder / "log.tsv";
  {
    TrainingLog log(path);
    log.begin(0);
    for (std::uint64_t step = 1; step <= 3; ++step) log.row(row(step));
  }
  EXPECT_EQ(contents(path), std::string(kHeader) + kRows[0] + kRows[1] + kRows[2]);
  {
    TrainingLog log(path);
    log.begin(2); // step 3 was done, but not saved
    EXPECT_EQ(log.seconds(), 1.0);
    EXPECT_EQ(contents(path), std::string(kHeader) + kRows[0] + kRows[1]);
    log.row(row(3));
  }
  EXPECT_EQ(contents(path), std::string(kHeader) + kRows[0] + kRows[1] + kRows[2]);
  TrainingLog log(path);
  log.begin(0); // a run from its beginning
  EXPECT_EQ(contents(path), kHeader);
}

TEST(Log, DropsALineThatACrashCut) {
  const Folder folder;
  const std::string path = folder / "log.tsv";
  std::ofstream(path) << kHeader << kRows[0] << "2\t20\t3.2";
  TrainingLog log(path);
  log.begin(5);
  EXPECT_EQ(contents(path), std::string(kHeader) + kRows[0]);
}

TEST(Log, DoesNotReplaceSomethingElse) {
  const Folder folder;
  std::ofstream(folder / "essay.txt") << "It was the best of times\n";
  EXPECT_THROW(TrainingLog(folder / "essay.txt"), Error);
  EXPECT_EQ(contents(folder / "essay.txt"), "It was the best of times\n");
  EXPECT_THROW(TrainingLog(folder / "none/log.tsv"), Error);
}

} // namespace
} // namespace noether::training
