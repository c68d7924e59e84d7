// Damaged files: bytes turned at random, in files of ours and of others. Whatever is then read gives an Error or some
// numbers; it does not crash, hang, or take memory that the file does not stand for. (Files cut short are
// stream_test's.)
#include "store/reader.h"

#include "store/scratch.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <random>

namespace noether::store {
namespace {

/// Reads everything that there is to read, in every way.
void read_all(const std::string& path) {
  InputStream stream(path);
  while (const std::optional<FileReader> file = stream.next()) {
    message([&] { file->provenance(); });
    message([&] { file->expect(kCheckpointFile); });
    for (const char* name : {"number", "string", "list"}) {
      message([&] { file->integer("/", name); });
      message([&] { file->string("/", name); });
    }
    for (const std::string& dataset : file->datasets()) {
      message([&] { file->info(dataset); });
      message([&] { file->text(dataset); });
      message([&] { file->view<float>(dataset); });
      message([&] { file->read<std::int64_t>(dataset); });
    }
  }
}

std::string our_file() {
  const std::vector<float> large(20'000, 1.0F);
  return piped([&] {
    FileWriter file(kCheckpointFile);
    file.array<float>("/a/large", {large.size()}, large);
    file.array<float>("/a/b/small", {2, 3}, {large.data(), 6});
    file.text("/text", "words");
    for (int i = 0; i < 12; ++i) file.attribute("/", "number" + std::to_string(i), std::int64_t{i});
    file.attribute("/", "string", "x");
    OutputStream stream("-");
    stream.write(std::move(file), {"{}"});
  });
}

struct Progress {
  std::uint64_t seed, done;
};

/// Runs in a child, so that a crash or a hang of the HDF5 library itself can be told from one of ours.
void turn_bytes(const std::string& whole, std::uint64_t seed, int rounds, Progress& progress) {
  const Scratch scratch;
  for (int round = 0; round < rounds; ++round) {
    progress.seed = seed + static_cast<std::uint64_t>(round);
    std::mt19937_64 random(progress.seed);
    std::string damaged = whole;
    // What HDF5 believes lies in the first bytes and the last; the middle of ours is numbers.
    const std::uint64_t reach = progress.seed % 2 == 0 ? damaged.size() : std::min<std::uint64_t>(damaged.size(), 4096);
    for (std::uint64_t turns = 1 + random() % 4; turns > 0; --turns)
      damaged[random() % reach] = static_cast<char>(random());
    spill(scratch / "f", damaged);
    ::alarm(60);
    message([&] { read_all(scratch / "f"); });
    ++progress.done;
  }
}

class Hostile : public testing::TestWithParam<const char*> {};

TEST_P(Hostile, BytesTurnedAtRandom) {
  const std::string name = GetParam();
#ifdef __SANITIZE_ADDRESS__
  if (name == "foreign.h5")
    GTEST_SKIP() << "skipped: HDF5 itself reads beyond a chunk that is marked as not compressed";
#endif
  const std::string whole = name == "ours" ? our_file() : slurp(std::string(NOETHER_TEST_DATA) + "/store/" + name);
  const char* given = std::getenv("NOETHER_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const char* more = std::getenv("NOETHER_TEST_ROUNDS");
  const int rounds = more != nullptr ? std::atoi(more) : 200;
  auto* progress = static_cast<Progress*>(
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    turn_bytes(whole, seed, rounds, *progress);
    ::_exit(0);
  }
  int status = -1;
  rusage usage{};
  ASSERT_EQ(::wait4(child, &status, 0, &usage), child);
  std::printf("%s: seed %llu, %llu rounds, peak %ld MiB\n", name.c_str(), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(progress->done), usage.ru_maxrss >> 10);
  EXPECT_EQ(status, 0) << "NOETHER_TEST_SEED=" << progress->seed << " NOETHER_TEST_ROUNDS=1 repeats it";
  EXPECT_LT(usage.ru_maxrss >> 10, 1024) << "MiB";
  ::munmap(progress, sizeof(Progress));
}

INSTANTIATE_TEST_SUITE_P(Store, Hostile, testing::Values("ours", "foreign.h5", "superblock0.h5", "superblock3.h5"),
                         [](const auto& tested) {
                           return std::string(tested.param).substr(0, std::string(tested.param).find('.'));
                         });

} // namespace
} // namespace noether::store
