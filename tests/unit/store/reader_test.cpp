// What other programs write, of every superblock; numbers that do not fit; files that reach for other files.
#include "store/reader.h"

#include "base/version.h"
#include "store/hdf5.h"
#include "store/scratch.h"

#include <cmath>
#include <limits>

namespace noether::store {
namespace {

const std::string kGolden = std::string(NOETHER_TEST_DATA) + "/store/";

FileReader open_file(const std::string& path) { return *InputStream(path).next(); }

std::string reading(const std::function<void(const FileReader&)>& work) {
  const FileReader file = open_file(kGolden + "foreign.h5");
  const std::string text = message([&] { work(file); });
  return text.starts_with(kGolden) ? text.substr(kGolden.size()) : text;
}

TEST(Reader, OpensEverySuperblockFromDiskAndFromAPipe) {
  const std::vector<float> expected{0, 0.5F, 1, 1.5F, 2, 2.5F};
  for (const char* name : {"superblock0.h5", "superblock2.h5", "superblock3.h5", "userblock.h5"}) {
    const FileReader file = open_file(kGolden + name);
    EXPECT_EQ(file.read<float>("/numbers"), expected) << name;
    EXPECT_EQ(file.view<float>("/numbers").back(), 2.5F) << name;
    EXPECT_EQ(file.info("/numbers").shape, (Shape{2, 3})) << name;
    EXPECT_EQ(file.kind(), "");
    EXPECT_EQ(file.digest(), "");
    EXPECT_TRUE(file.provenance().empty());
    const std::string twice = slurp(kGolden + name) + slurp(kGolden + name);
    through_pipe(twice, [&] {
      InputStream stream("-");
      EXPECT_EQ(stream.next()->read<float>("/numbers"), expected) << name;
      EXPECT_EQ(stream.next()->read<float>("/numbers"), expected) << name;
      EXPECT_FALSE(stream.next().has_value());
      return 0;
    });
  }
}

// Superblock 1 and offsets of 4 bytes, which h5py cannot make; and a block put before a file that does not know of it.
TEST(Reader, OpensRarerSuperblocks) {
  hdf5_start();
  const Scratch scratch;
  for (const std::size_t width : {4U, 8U}) {
    for (const unsigned rank : {32U, 64U}) { // another rank than the default makes version 1
      const std::string path = scratch / fmt::format("{}-{}.h5", width, rank);
      {
        const Properties creation(H5Pcreate(H5P_FILE_CREATE), "test");
        H5Pset_sizes(creation, width, width);
        H5Pset_istore_k(creation, rank);
        const H5File file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT), "test");
        const hsize_t two = 2;
        const Space space(H5Screate_simple(1, &two, nullptr), "test");
        const Dataset dataset(H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                              "test");
        const double values[]{1.5, -2};
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
      }
      const std::string bytes = slurp(path);
      EXPECT_EQ(bytes[8], rank == 32 ? 0 : 1);
      const auto check = [&](const std::string& input) {
        through_pipe(input, [&] {
          EXPECT_EQ(open_file("-").read<double>("/x"), (std::vector<double>{1.5, -2}));
          return 0;
        });
      };
      check(bytes);
      check(std::string(512, ' ') + bytes);
      check(std::string(4096, '\0') + bytes);
    }
  }
}

TEST(Reader, ConvertsBetweenNumbers) {
  const FileReader file = open_file(kGolden + "foreign.h5");
  const std::vector<double> chunked = file.read<double>("/chunked");
  ASSERT_EQ(chunked.size(), 1000U);
  EXPECT_EQ(chunked[999], 999.0);
  EXPECT_EQ(file.view<float>("/chunked")[500], 500.0F);
  EXPECT_EQ(file.view<float>("/chunked").data(), file.view<float>("/chunked").data());
  EXPECT_EQ(file.view<std::uint16_t>("/chunked")[500], 500);
  EXPECT_EQ(file.read<std::int64_t>("/big_endian"), (std::vector<std::int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(file.read<float>("/bytes"), (std::vector<float>{-1, 0, 127}));
  EXPECT_EQ(file.read<float>("/half"), (std::vector<float>{0.5F, -2}));
  EXPECT_EQ(file.read<std::uint8_t>("/scalar"), std::vector<std::uint8_t>{7});
  EXPECT_EQ(file.read<float>("/unwritten"), std::vector<float>(4, 2.5F));
  EXPECT_TRUE(file.read<float>("/nothing").empty());
  EXPECT_TRUE(file.view<double>("/nothing").empty());
  EXPECT_EQ(file.read<float>("/huge"), std::vector<float>{0x1p40F});
  const std::vector<float> doubles = file.read<float>("/doubles");
  EXPECT_EQ(doubles[0], 0.1F);
  EXPECT_EQ(doubles[1], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(doubles[2]));
}

TEST(Reader, ANumberThatDoesNotFitIsAnError) {
  const auto fails = [](const char* path, Type type, std::uint64_t count) {
    std::vector<double> out(count);
    return reading([&](const FileReader& file) { file.read(path, type, out.data(), count); });
  };
  EXPECT_NE(fails("/huge", Type::u32, 1).find("foreign.h5: /huge cannot be read as uint32: "), std::string::npos);
  EXPECT_NE(fails("/big_endian", Type::u64, 5).find("/big_endian cannot be read as uint64"), std::string::npos);
  EXPECT_NE(fails("/bytes", Type::u8, 3).find("/bytes cannot be read as uint8"), std::string::npos);
  EXPECT_NE(fails("/chunked", Type::u8, 1000).find("/chunked cannot be read as uint8"), std::string::npos);
  EXPECT_NE(fails("/large", Type::f32, 2).find("/large cannot be read as float32"), std::string::npos);
  EXPECT_NE(fails("/doubles", Type::i64, 3).find("/doubles cannot be read as int64"), std::string::npos);
}

TEST(Reader, SaysWhatIsThere) {
  const FileReader file = open_file(kGolden + "foreign.h5");
  EXPECT_TRUE(file.has("/group/inner"));
  EXPECT_TRUE(file.has("/"));
  EXPECT_TRUE(file.has("/soft"));
  for (const char* path : {"/group/other", "/scalar/inner", "/dangling", "/dangling/x", "/external", "/external/x"})
    EXPECT_FALSE(file.has(path)) << path;
  EXPECT_EQ(file.info("/big_endian").type, std::nullopt);
  EXPECT_EQ(file.info("/chunked").type, Type::f64);
  EXPECT_EQ(file.info("/enormous").shape, Shape{std::uint64_t{1} << 50});
  const std::vector<std::string> found = file.datasets();
  // A group with two names is listed once; links to elsewhere are not.
  for (const char* path : {"/soft", "/external", "/dangling", "/hard/inner"})
    EXPECT_EQ(std::count(found.begin(), found.end(), path), 0) << path;
  EXPECT_EQ(std::count(found.begin(), found.end(), "/group/inner"), 1);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
}

TEST(Reader, ReadsStringsOfBothSorts) {
  const FileReader file = open_file(kGolden + "foreign.h5");
  EXPECT_EQ(file.text("/text"), "h\u00e9llo");
  EXPECT_EQ(file.string("/", "string"), "variable");
  EXPECT_EQ(reading([](const FileReader& f) { f.text("/texts"); }), "foreign.h5: /texts: 3 strings, expected one");
  EXPECT_EQ(reading([](const FileReader& f) { f.text("/scalar"); }), "foreign.h5: /scalar is not a string");
}

TEST(Reader, ReadsAttributes) {
  const FileReader file = open_file(kGolden + "foreign.h5");
  EXPECT_EQ(file.integer("/", "integer"), -7);
  EXPECT_EQ(file.number("/", "integer"), -7);
  EXPECT_EQ(file.number("/", "number"), 1.5);
  EXPECT_FALSE(file.has_attribute("/", "none"));
  EXPECT_FALSE(file.has_attribute("/none", "none"));
  EXPECT_TRUE(file.has_attribute("/", "list"));
  const auto fails = [](const char* path, const char* name) {
    return reading([&](const FileReader& f) { f.integer(path, name); });
  };
  EXPECT_EQ(fails("/", "natural"), "foreign.h5: attribute natural of / is 18446744073709551615, too large");
  EXPECT_EQ(fails("/", "number"), "foreign.h5: attribute number of / is not an integer");
  EXPECT_EQ(fails("/", "list"), "foreign.h5: attribute list of / is not a single value");
  EXPECT_EQ(fails("/", "empty"), "foreign.h5: attribute empty of / is not a single value");
  EXPECT_EQ(fails("/", "none"), "foreign.h5: / has no attribute none");
  EXPECT_EQ(fails("/none", "none"), "foreign.h5: /none has no attribute none");
  EXPECT_EQ(reading([](const FileReader& f) { f.string("/", "integer"); }),
            "foreign.h5: attribute integer of / is not a string");
  EXPECT_EQ(reading([](const FileReader& f) { f.number("/", "string"); }),
            "foreign.h5: attribute string of / is not a number");
}

TEST(Reader, NamesWhatIsMissing) {
  const auto fails = [](const char* path) { return reading([&](const FileReader& f) { f.read<float>(path); }); };
  EXPECT_EQ(fails("/chunkd"), "foreign.h5: no dataset /chunkd (did you mean /chunked?)");
  EXPECT_EQ(fails("/tokens/of/another/world"), "foreign.h5: no dataset /tokens/of/another/world "
                                               "(found: /big_endian, /bytes, /chunked, /doubles, ...)");
  EXPECT_EQ(fails("/group"), "foreign.h5: /group is not a dataset");
  EXPECT_EQ(fails("/pair"), "foreign.h5: /pair does not hold numbers");
  EXPECT_EQ(fails("/text"), "foreign.h5: /text does not hold numbers");
  EXPECT_EQ(reading([](const FileReader& f) { f.datasets("/none"); }), "foreign.h5: no group /none");
  float out[4];
  EXPECT_EQ(reading([&](const FileReader& f) { f.read("/half", Type::f32, out, 4); }),
            "foreign.h5: /half has 2 elements [2], expected 4");
}

TEST(Reader, ClaimsAreComparedWithTheBytesAtHand) {
  EXPECT_EQ(reading([](const FileReader& f) { f.read<float>("/enormous"); }),
            fmt::format("foreign.h5: /enormous claims 4503599627370496 bytes, in a file of {}",
                        slurp(kGolden + "foreign.h5").size()));
  EXPECT_EQ(reading([](const FileReader& f) { f.view<float>("/enormous"); }),
            reading([](const FileReader& f) { f.read<float>("/enormous"); }));
}

TEST(Reader, FollowsNothingIntoOtherFiles) {
  const auto fails = [](const char* path) { return reading([&](const FileReader& f) { f.read<float>(path); }); };
  EXPECT_EQ(fails("/outside"), "foreign.h5: /outside has its data in other files, which are not followed");
  EXPECT_EQ(fails("/virtual"), "foreign.h5: /virtual has its data in other files, which are not followed");
  EXPECT_EQ(fails("/external").substr(0, 33), "foreign.h5: no dataset /external ");
}

TEST(Reader, KindsAndFormatsAreCompared) {
  const Scratch scratch;
  const auto opens = [&](Kind written, Kind expected) {
    OutputStream stream(scratch / "f");
    stream.write(FileWriter(written), {});
    stream.close();
    const std::string text = message([&] { open_file(scratch / "f").expect(expected); });
    return text.empty() ? text : text.substr((scratch / "").size());
  };
  EXPECT_EQ(opens(kTokensFile, kTokensFile), "");
  EXPECT_EQ(opens(kTokensFile, kCheckpointFile), "f: expected a checkpoint, found a tokens file");
  EXPECT_EQ(opens(kTokenizerFile, kTokensFile), "f: expected a tokens file, found a tokenizer");
  EXPECT_EQ(opens({"tokens", 3}, kTokensFile),
            std::string("f: format 3 of tokens, written by a newer noether; this is ") + kVersion +
                ", which reads up to 1");
  EXPECT_EQ(opens({"tokens", 1}, {"tokens", 2}), "") << "old formats stay readable";
  EXPECT_EQ(reading([](const FileReader& f) { f.expect(kTokensFile); }),
            "foreign.h5: expected a tokens file, found an HDF5 file that noether did not write");
}

} // namespace
} // namespace noether::store
