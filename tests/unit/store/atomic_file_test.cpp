// A file appears whole or not at all.
#include "store/atomic_file.h"

#include "store/scratch.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

namespace noether::store {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(AtomicFile, AppearsAtCommitAndLeavesNothingElse) {
  const Scratch scratch;
  AtomicFile file(scratch / "a");
  EXPECT_TRUE(file.regular());
  file.write("hello");
  EXPECT_FALSE(std::filesystem::exists(scratch / "a"));
  file.commit();
  EXPECT_EQ(slurp(scratch / "a"), "hello");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const Scratch scratch;
  spill(scratch / "a", "old");
  {
    AtomicFile file(scratch / "a");
    file.write("new");
    AtomicFile moved(std::move(file));
    moved.write("er");
  }
  EXPECT_EQ(slurp(scratch / "a"), "old");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(AtomicFile, RespectsUmaskAndKeepsTheModeOfAnOldFile) {
  const Scratch scratch;
  const mode_t before = ::umask(027);
  write_file(scratch / "new", "x");
  ::umask(before);
  EXPECT_EQ(mode_of(scratch / "new"), 0640U);
  ::chmod((scratch / "new").c_str(), 0604);
  write_file(scratch / "new", "y");
  EXPECT_EQ(mode_of(scratch / "new"), 0604U);
}

TEST(AtomicFile, FollowsLinks) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "data");
  spill(scratch / "data/real", "old");
  std::filesystem::create_symlink("data/real", scratch / "link");
  write_file(scratch / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(slurp(scratch / "data/real"), "new");
  std::filesystem::create_symlink("data/later", scratch / "dangling");
  write_file(scratch / "dangling", "made");
  EXPECT_EQ(slurp(scratch / "data/later"), "made");
  std::filesystem::create_symlink("round", scratch / "round");
  EXPECT_EQ(message([&] { AtomicFile file(scratch / "round"); }),
            (scratch / "round") + ": too many levels of symbolic links");
}

TEST(AtomicFile, WritesDevicesAndFifosAsTheyAre) {
  const Scratch scratch;
  AtomicFile null("/dev/null");
  EXPECT_FALSE(null.regular());
  null.write("gone");
  null.commit();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));

  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  std::string got;
  {
    const std::jthread reader([&] { got = slurp(scratch / "fifo"); });
    write_file(scratch / "fifo", "through");
  }
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(scratch / "fifo"));
}

TEST(AtomicFile, NamesWhatIsWrong) {
  const Scratch scratch;
  EXPECT_EQ(message([&] { AtomicFile file(scratch / "no/a"); }), (scratch / "no/a") + ": no such folder");
  EXPECT_EQ(message([&] { AtomicFile file(scratch.folder()); }), scratch.folder() + ": is a folder");
  EXPECT_EQ(message([&] { write_file("/dev/full", "x"); }), "/dev/full: no space left on device");
}

TEST(AtomicFile, RefusesWhatItMayNotWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "skipped: the superuser may write everywhere";
  const Scratch scratch;
  spill(scratch / "kept", "old");
  ::chmod((scratch / "kept").c_str(), 0444);
  EXPECT_EQ(message([&] { AtomicFile file(scratch / "kept"); }), (scratch / "kept") + ": permission denied");
  ::chmod(scratch.folder().c_str(), 0555);
  EXPECT_EQ(message([&] { AtomicFile file(scratch / "new"); }), (scratch / "new") + ": permission denied");
  ::chmod(scratch.folder().c_str(), 0755);
}

// A limit on the size of files stands in for a full disk: the same error path, and no disk need be filled.
TEST(AtomicFile, SaysThatTheOldFileIsUnchanged) {
  const Scratch scratch;
  const std::string path = scratch / "a";
  spill(path, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string kept = message([&] { write_file(path, std::string(2000, 'x')); });
    const std::string none = message([&] { write_file(path + "2", std::string(2000, 'x')); });
    const bool right =
        kept == path + ": file too large (the old " + path + " is unchanged)" && none == path + "2: file too large";
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(slurp(path), "old");
  EXPECT_EQ(scratch.files(), 1U);
}

// A small file system in memory, where the superuser may make one: a full disk is noticed before anything is written.
TEST(AtomicFile, ReservesItsRoomFirst) {
  const Scratch scratch;
  if (::mount("none", scratch.folder().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "skipped: not allowed to mount a file system";
  spill(scratch / "a", "old");
  std::string text;
  {
    AtomicFile file(scratch / "a");
    file.reserve(100'000);
    file.write("x");
    text = message([&] { file.reserve(10'000'000); });
  }
  const std::string after = slurp(scratch / "a");
  const std::size_t files = scratch.files();
  ::umount(scratch.folder().c_str());
  EXPECT_EQ(text, (scratch / "a") + ": no space left on device (the old " + (scratch / "a") + " is unchanged)");
  EXPECT_EQ(after, "old");
  EXPECT_EQ(files, 1U);
}

TEST(AtomicFile, TwoWritersNeverMix) {
  const Scratch scratch;
  const std::string a(100'000, 'a'), b(100'000, 'b');
  AtomicFile first(scratch / "f"), second(scratch / "f");
  for (int i = 0; i < 10; ++i) {
    first.write(a);
    second.write(b);
  }
  second.commit();
  EXPECT_EQ(slurp(scratch / "f").find('a'), std::string::npos);
  first.commit();
  EXPECT_EQ(slurp(scratch / "f").find('b'), std::string::npos);
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(AtomicFile, AKilledWriterLeavesNothing) {
  const Scratch scratch;
  const int probe = ::open(scratch.folder().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "skipped: this file system has no files without a name";
  ::close(probe);
  spill(scratch / "f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(scratch / "f");
    file.write("new");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(slurp(scratch / "f"), "old");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(AtomicFile, TakesNoNoticeOfWhatAKilledWriterLeft) {
  const Scratch scratch;
  for (int i = 0; i < 2000; ++i) // more than this process has opened so far, whatever their numbers
    spill(scratch / (".f." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp"), "stale");
  write_file(scratch / "f", "new");
  EXPECT_EQ(slurp(scratch / "f"), "new");
  EXPECT_EQ(scratch.files(), 2001U);
}

TEST(WriteAll, DiesOfSigpipeAsUnixProgramsDo) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    write_all(ends[1], "x", 1, "stdout");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(message([&] { write_all(ends[1], "x", 1, "stdout"); }), "stdout: broken pipe");
  ::close(ends[1]);
}

} // namespace
} // namespace noether::store
