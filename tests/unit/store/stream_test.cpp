// Files through pipes and on disk: one or several, plain or compressed, cut short at every place.
#include "store/stream.h"

#include "store/scratch.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <zstd.h>

#include <csignal>
#include <cstdlib>
#include <numeric>

namespace noether::store {
namespace {

FileWriter table(std::int64_t number, const std::vector<float>& values) {
  FileWriter file(kTableFile);
  file.array<float>("/values", {values.size()}, values);
  file.attribute("/", "number", number);
  return file;
}

/// The bytes of a file with that number, as they go through a pipe.
std::string image(std::int64_t number, bool more = false, int level = 0, std::size_t count = 100) {
  const std::vector<float> values(count, static_cast<float>(number));
  return piped([&] {
    OutputStream stream("-", level);
    stream.write(table(number, values), {}, more);
    if (!more) stream.close();
  });
}

/// The numbers of all files in a stream.
std::vector<std::int64_t> numbers(const std::string& path) {
  std::vector<std::int64_t> found;
  InputStream stream(path);
  while (const std::optional<FileReader> file = stream.next()) {
    found.push_back(file->integer("/", "number"));
    const std::span<const float> values = file->view<float>("/values");
    EXPECT_EQ(values.back(), static_cast<float>(found.back()));
  }
  return found;
}

std::vector<std::int64_t> piped_numbers(const std::string& bytes) {
  return through_pipe(bytes, [] { return numbers("-"); });
}

std::string piped_message(const std::string& bytes) {
  return message([&] { piped_numbers(bytes); });
}

/// The same from a file on disk, without its name.
std::string file_message(const std::string& bytes) {
  const Scratch scratch;
  spill(scratch / "f", bytes);
  const std::string text = message([&] { numbers(scratch / "f"); });
  return text.starts_with(scratch / "f") ? "f" + text.substr((scratch / "f").size()) : text;
}

std::string compress(const std::string& bytes, bool checksum = true) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), bytes.data(), bytes.size()));
  return out;
}

using Numbers = std::vector<std::int64_t>;

TEST(Stream, OneOrSeveralThroughAPipe) {
  EXPECT_EQ(piped_numbers(image(1)), (Numbers{1}));
  EXPECT_EQ(piped_numbers(image(1, true) + image(2, true) + image(3)), (Numbers{1, 2, 3}));
  EXPECT_EQ(piped_numbers(image(1) + image(2)), (Numbers{1, 2})) << "cat one.h5 two.h5 |";
}

TEST(Stream, OneOrSeveralInAFile) {
  const Scratch scratch;
  spill(scratch / "f", image(1, true) + image(2) + image(3));
  EXPECT_EQ(numbers(scratch / "f"), (Numbers{1, 2, 3}));
  const int file = ::open((scratch / "f").c_str(), O_RDONLY);
  {
    const Redirect redirect(STDIN_FILENO, file);
    EXPECT_EQ(numbers("-"), (Numbers{1, 2, 3})) << "< f";
  }
  ::lseek(file, static_cast<off_t>(image(1, true).size()), SEEK_SET);
  {
    const Redirect redirect(STDIN_FILENO, file);
    EXPECT_EQ(numbers("-"), (Numbers{2, 3})) << "a program before has read the first";
  }
  ::close(file);
}

TEST(Stream, LargeArraysArriveAsTheyAre) {
  // More than a pipe holds and than is given as huge pages at once, and no multiple of a page.
  std::vector<float> values(3'000'001);
  std::iota(values.begin(), values.end(), 0.0F);
  for (const int level : {0, 1}) {
    const std::string bytes = piped([&] {
      OutputStream stream("-", level);
      stream.write(table(1, values), {}, true);
      // The caller may change them now, whether or not the other side has read them.
      std::vector<float> others(values.size(), -1.0F);
      stream.write(table(2, others), {});
      others.assign(others.size(), -2.0F);
      stream.close();
    });
    if (level == 0) {
      EXPECT_GT(bytes.size(), 2 * values.size() * sizeof(float));
    }
    const auto check = [&](const std::string& path) {
      InputStream stream(path);
      EXPECT_EQ(stream.next()->read<float>("/values"), values);
      EXPECT_EQ(stream.next()->read<float>("/values"), std::vector<float>(values.size(), -1.0F));
      EXPECT_FALSE(stream.next().has_value());
    };
    through_pipe(bytes, [&] {
      check("-");
      return 0;
    });
    const Scratch scratch;
    spill(scratch / "f", bytes);
    check(scratch / "f");
  }
}

TEST(Stream, FilesOutliveTheirStream) {
  const Scratch scratch;
  spill(scratch / "f", image(1) + image(2));
  std::vector<FileReader> files;
  {
    InputStream stream(scratch / "f");
    while (std::optional<FileReader> file = stream.next()) files.push_back(std::move(*file));
  }
  std::filesystem::remove(scratch / "f");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].read<float>("/values"), std::vector<float>(100, 1.0F));
  EXPECT_EQ(files[1].view<float>("/values").front(), 2.0F);
  EXPECT_EQ(files[1].name(), (scratch / "f") + " (image 2)");
}

TEST(Stream, CutShortAnywhereNamesBothLengths) {
  const std::string whole = image(1);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    // Up to its end-of-file address nobody can know how long the file was to be.
    const std::string expected = length < 36
                                     ? fmt::format(": cut short: {} bytes, too few for an HDF5 file", length)
                                     : fmt::format(": cut short: expected {} bytes, got {}", whole.size(), length);
    ASSERT_EQ(piped_message(cut), "stdin" + expected);
    ASSERT_EQ(file_message(cut), "f" + expected);
  }
}

TEST(Stream, ASecondFileCutShortIsAnErrorToo) {
  const std::string first = image(1, true), second = image(2);
  for (const std::size_t length : {std::size_t{1}, std::size_t{40}, second.size() - 1}) {
    EXPECT_NE(piped_message(first + second.substr(0, length)).find("stdin: cut short: "), std::string::npos);
    EXPECT_NE(file_message(first + second.substr(0, length)).find("f: cut short: "), std::string::npos);
  }
}

TEST(Stream, AnEndAfterAnAnnouncementIsAnError) {
  const std::string expected =
      ": ends after file 2, which announced another one; did the program before this one fail?";
  EXPECT_EQ(piped_message(image(1, true) + image(2, true)), "stdin" + expected);
  EXPECT_EQ(file_message(image(1, true) + image(2, true)), "f" + expected);
  EXPECT_EQ(piped_message(image(1, true, 3) + image(2, true, 3)), "stdin" + expected);
}

TEST(Stream, NothingAtAllIsAnError) {
  EXPECT_EQ(piped_message(""), "stdin: empty; did the program before this one fail?");
  EXPECT_EQ(piped_message(compress("")), "stdin: empty; did the program before this one fail?");
  EXPECT_EQ(file_message(""), "f: empty");
  EXPECT_EQ(message([] { numbers("/dev/null"); }), "/dev/null: empty");
}

TEST(Stream, SaysWhatOtherBytesLookLike) {
  const std::string safetensors = std::string("\x10\0\0\0\0\0\0\0", 8) + "{\"a\":{}}";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"PK\3\4zip", "starts with PK: a zip archive; PyTorch's are for noether init from"},
      {"\x93NUMPY\1", "starts with \\x93NUMPY: a NumPy array"},
      {safetensors, "a safetensors file; noether init from reads it"},
      {"\x80\2}", "a Python pickle"},
      {"\x1f\x8b\x08", "a gzip file; gunzip it first"},
      {"{\"a\": 1}", "looks like JSON"},
      {"In the beginning God created the heaven\n", "text: \"In the beginning God...\""},
      {"caf\u00e9\n", "text: \"caf\""},
      {"\u00e9t\u00e9", "text"},
      {std::string("\0\1\2", 3), "starts with 00 01 02"},
      {"\x89PNG\r\n", "starts with 89 50 4e 47 0d 0a"},
  };
  for (const auto& [bytes, looks] : cases) {
    EXPECT_EQ(piped_message(bytes), "stdin: neither HDF5 nor zstd (" + looks + ")");
    EXPECT_EQ(file_message(bytes), "f: neither HDF5 nor zstd (" + looks + ")");
  }
}

TEST(Stream, OtherBytesAfterAFileAreAnError) {
  const std::string expected =
      ": more bytes after the end of the HDF5 file, and they are neither HDF5 nor zstd (text: \"x\")";
  EXPECT_EQ(piped_message(image(1) + "x\n"), "stdin" + expected);
  EXPECT_EQ(file_message(image(1) + "x\n"), "f" + expected);
  EXPECT_EQ(piped_message(compress(image(1)) + "x\n"), "stdin" + expected);
  EXPECT_EQ(piped_message(compress(image(1) + "x\n")), "stdin" + expected);
}

TEST(Stream, ReadsZstdByItsFirstBytes) {
  const std::string one = image(1), two = image(2);
  const std::string skippable = std::string("\x5a\x2a\x4d\x18\x03\0\0\0", 8) + "abc";
  for (const std::string& bytes : {
           image(1, false, 3) + image(2, false, 19),                       // a frame each, as -z makes them
           compress(one + two),                                            // both in one frame
           compress(one.substr(0, 100)) + compress(one.substr(100) + two), // as pzstd cuts, anywhere
           compress(one) + two,                                            // mixed
           one + compress(two),                                            //
           skippable + compress(one) + skippable + compress(two) + skippable,
           compress("") + compress(one, false) + compress("") + compress(two),
       }) {
    EXPECT_EQ(piped_numbers(bytes), (Numbers{1, 2}));
    const Scratch scratch;
    spill(scratch / "f", bytes);
    EXPECT_EQ(numbers(scratch / "f"), (Numbers{1, 2}));
  }
}

TEST(Stream, ACompressedFileStatesItsLength) {
  const std::string plain = image(1, false, 0, 50'000), packed = image(1, false, 3, 50'000);
  EXPECT_LT(packed.size(), plain.size() / 10);
  EXPECT_EQ(ZSTD_getFrameContentSize(packed.data(), packed.size()), plain.size());
}

TEST(Stream, ZstdCutShortOrDamagedIsAnError) {
  const std::string packed = compress(image(1));
  for (std::size_t length = 5; length < packed.size(); ++length)
    ASSERT_NE(piped_message(packed.substr(0, length)).find("cut short inside a zstd frame"), std::string::npos)
        << length;
  std::string damaged = packed;
  damaged.back() = static_cast<char>(damaged.back() ^ 1); // the checksum
  EXPECT_NE(piped_message(damaged).find("stdin: damaged zstd data: "), std::string::npos);
  EXPECT_NE(file_message(damaged).find("f: damaged zstd data: "), std::string::npos);
}

TEST(Stream, AHeaderCannotAskForMemory) {
  std::string liar = image(1);
  for (const std::uint64_t claim : {std::uint64_t{1} << 40, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    std::memcpy(liar.data() + 28, &claim, sizeof claim);
    EXPECT_EQ(piped_message(liar), fmt::format("stdin: cut short: expected {} bytes, got {}", claim, liar.size()));
    EXPECT_EQ(file_message(liar), fmt::format("f: cut short: expected {} bytes, got {}", claim, liar.size()));
  }
  const std::uint64_t early = 3;
  std::memcpy(liar.data() + 28, &early, sizeof early);
  EXPECT_EQ(piped_message(liar), "stdin: damaged HDF5 superblock: the file ends at 3, before its beginning");
  liar[8] = 9;
  EXPECT_EQ(piped_message(liar), "stdin: HDF5 superblock of version 9, expected 0 to 3");
}

TEST(Stream, AWriterThatDiesIsAnErrorForItsReader) {
  const std::vector<float> values(1'000'000, 1.0F);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
    OutputStream stream("-");
    stream.write(table(1, values), {}, true);
    ::raise(SIGKILL); // with a pipe that may still be full of what it gave
  }
  ::close(ends[1]);
  const Redirect redirect(STDIN_FILENO, ends[0]);
  ::close(ends[0]);
  InputStream stream("-");
  EXPECT_EQ(stream.next()->read<float>("/values"), values);
  EXPECT_EQ(message([&] { stream.next(); }),
            "stdin: ends after file 1, which announced another one; did the program before this one fail?");
  ::waitpid(child, nullptr, 0);
}

TEST(Stream, ReadsAndWritesFifos) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  const std::vector<float> values(100'000, 5.0F);
  const std::jthread writer([&] {
    OutputStream stream(scratch / "fifo");
    stream.write(table(5, values), {});
    stream.close();
  });
  // HDF5 is one thread's: the writer's last use of it comes before its first byte, and so before ours.
  EXPECT_EQ(numbers(scratch / "fifo"), (Numbers{5}));
  EXPECT_TRUE(std::filesystem::is_fifo(scratch / "fifo"));
}

TEST(Stream, SpillsToDiskWhatMemoryDoesNotHold) {
  // A length beyond half of any memory is received into TMPDIR: the error of a folder that is not there proves the way
  // taken.
  std::string liar = image(1);
  const std::uint64_t claim = std::uint64_t{1} << 50;
  std::memcpy(liar.data() + 28, &claim, sizeof claim);
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nowhere", 1);
  const std::string text = piped_message(liar);
  if (before == nullptr)
    ::unsetenv("TMPDIR");
  else
    ::setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_EQ(text.substr(0, text.find("/nowhere")), "stdin: declares 1125899906842624 bytes, too many for memory, and ");
}

TEST(Stream, LocksOfOthersDoNotMatter) {
  const Scratch scratch;
  spill(scratch / "f", image(1));
  const int other = ::open((scratch / "f").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(numbers(scratch / "f"), (Numbers{1}));
  const std::vector<float> values(10, 2.0F);
  OutputStream stream(scratch / "f");
  stream.write(table(2, values), {});
  stream.close();
  EXPECT_EQ(numbers(scratch / "f"), (Numbers{2}));
  ::close(other);
}

TEST(Stream, ARegularFileIsReplacedWholeOrNotAtAll) {
  const Scratch scratch;
  const std::vector<float> values(10, 2.0F);
  spill(scratch / "f", "old");
  {
    OutputStream stream(scratch / "f");
    stream.write(table(2, values), {});
  }
  EXPECT_EQ(slurp(scratch / "f"), "old");
  {
    OutputStream stream(scratch / "f", 3);
    stream.write(table(2, values), {});
    stream.close();
  }
  EXPECT_EQ(numbers(scratch / "f"), (Numbers{2}));
  EXPECT_EQ(scratch.files(), 1U);
  OutputStream untouched(scratch / "f");
  untouched.close();
  EXPECT_EQ(numbers(scratch / "f"), (Numbers{2}));
}

TEST(Stream, SeveralFilesIntoOneOnDiskAreRefused) {
  const Scratch scratch;
  const std::vector<float> values(10, 2.0F);
  const std::string path = scratch / "f";
  const std::string expected =
      path + " is a file on disk: readers would see only the first of several; use a pipe, or one file each";
  OutputStream one(path);
  EXPECT_EQ(message([&] { one.write(table(1, values), {}, true); }), expected);
  one.write(table(1, values), {});
  EXPECT_EQ(message([&] { one.write(table(2, values), {}); }), expected);
  one.close();

  const int append = ::open(path.c_str(), O_WRONLY | O_APPEND);
  const std::string text = [&] {
    const Redirect redirect(STDOUT_FILENO, append);
    return message([] { OutputStream stream("-"); });
  }();
  ::close(append);
  EXPECT_EQ(text,
            fmt::format("stdout is a file that already holds {} bytes; readers would not see what comes after them",
                        std::filesystem::file_size(path)));
}

TEST(Stream, AFullDiskIsSaid) {
  const std::vector<float> values(1'000'000, 2.0F);
  for (const int level : {0, 1}) {
    OutputStream stream("/dev/full", level);
    EXPECT_EQ(message([&] { stream.write(table(1, values), {}); }), "/dev/full: no space left on device");
  }
  const int full = ::open("/dev/full", O_WRONLY);
  const std::string text = [&] {
    const Redirect redirect(STDOUT_FILENO, full);
    OutputStream stream("-");
    return message([&] { stream.write(table(1, values), {}); });
  }();
  ::close(full);
  EXPECT_EQ(text, "stdout: no space left on device");
}

TEST(Stream, NoticesThatItsReaderIsGone) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::signal(SIGPIPE, SIG_IGN);
  const Redirect redirect(STDOUT_FILENO, ends[1]);
  ::close(ends[1]);
  OutputStream stream("-");
  EXPECT_FALSE(stream.reader_gone());
  ::close(ends[0]);
  EXPECT_TRUE(stream.reader_gone());
  const std::vector<float> small(10, 1.0F), large(1'000'000, 1.0F);
  EXPECT_EQ(message([&] { stream.write(table(1, small), {}); }), "stdout: broken pipe");
  EXPECT_EQ(message([&] { stream.write(table(1, large), {}); }), "stdout: broken pipe");
  const Scratch scratch;
  EXPECT_FALSE(OutputStream(scratch / "f").reader_gone());
}

TEST(Stream, AnAnnouncementMustBeKept) {
  const std::vector<float> values(10, 2.0F);
  std::string text;
  piped([&] {
    OutputStream stream("-");
    stream.write(table(1, values), {}, true);
    text = message([&] { stream.close(); });
  });
  EXPECT_EQ(text, "stdout: another file was announced and not written");
}

TEST(Stream, NamesWhatCannotBeOpened) {
  const Scratch scratch;
  EXPECT_EQ(message([&] { InputStream stream(scratch / "f"); }), (scratch / "f") + ": no such file");
  EXPECT_EQ(message([&] { InputStream stream(scratch.folder()); }), scratch.folder() + ": is a folder");
  EXPECT_EQ(message([&] { OutputStream stream(scratch / "no/f"); }), (scratch / "no/f") + ": no such folder");
  EXPECT_EQ(message([&] { OutputStream stream(scratch / "f", 99); }), "zstd level 99, expected 1 to 22");
}

TEST(Stream, BinaryIsNeitherReadFromATerminalNorWrittenToOne) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    GTEST_SKIP() << "skipped: no terminals here";
  const std::string name = ::ptsname(terminal);
  const int screen = ::open(name.c_str(), O_RDWR | O_NOCTTY);
  std::string in, out;
  {
    const Redirect redirect(STDIN_FILENO, screen);
    EXPECT_THROW(InputStream("-"), UsageError);
    in = message([] { InputStream stream("-"); });
  }
  {
    const Redirect redirect(STDOUT_FILENO, screen);
    EXPECT_THROW(OutputStream("-"), UsageError);
    out = message([] { OutputStream stream("-"); });
  }
  EXPECT_THROW(OutputStream{name}, UsageError);
  ::close(screen);
  ::close(terminal);
  EXPECT_EQ(in, "stdin is a terminal; redirect it or name a file");
  EXPECT_EQ(out, "stdout is a terminal; redirect it or name a file with -o");
}

TEST(Stream, OpenOneWantsOneOfItsKind) {
  const Scratch scratch;
  spill(scratch / "f", image(1));
  EXPECT_EQ(open_one(scratch / "f", kTableFile).integer("/", "number"), 1);
  EXPECT_EQ(message([&] { open_one(scratch / "f", kCheckpointFile); }),
            (scratch / "f") + ": expected a checkpoint, found a table");
  spill(scratch / "g", image(1) + image(2));
  EXPECT_EQ(message([&] { open_one(scratch / "g", kTableFile); }),
            (scratch / "g") + ": holds more than one file, expected one");
  EXPECT_EQ(through_pipe(image(3), [] { return open_one("-", kTableFile).integer("/", "number"); }), 3);
}

} // namespace
} // namespace noether::store
