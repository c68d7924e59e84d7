// What is written: the same bytes for the same content, digests that anybody can recompute, files that other programs
// open.
#include "store/writer.h"

#include "store/hdf5.h"
#include "store/scratch.h"

#include <sys/wait.h>
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <numeric>

namespace noether::store {
namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// One of everything: large and small arrays, texts, attributes of three types on three kinds of object.
FileWriter sample(const std::vector<float>& large) {
  FileWriter file(kCheckpointFile);
  file.array<float>("/parameters/layers/0/W", {2, large.size() / 2}, large);
  file.array<std::uint16_t>("/ids", std::vector<std::uint16_t>{1, 2, 65535});
  file.array<float>("/parameters/layers/1/W", {large.size()}, large);
  file.text("/configuration", "{\"width\": 8}");
  file.text("/note", "");
  file.attribute("/", "width", std::int64_t{-8});
  file.attribute("/parameters", "epsilon", 1e-5);
  file.attribute("/ids", "vocabulary", "caf\u00e9");
  return file;
}

void save(FileWriter file, const std::string& path, const std::vector<std::string>& provenance = {"{}"}) {
  OutputStream stream(path);
  stream.write(std::move(file), provenance);
  stream.close();
}

TEST(Writer, KnowsItsTypes) {
  EXPECT_EQ(name_of(Type::u8), "uint8");
  EXPECT_EQ(name_of(Type::i64), "int64");
  EXPECT_EQ(name_of(Type::f64), "float64");
  EXPECT_EQ(size_of(Type::u16), 2U);
  EXPECT_EQ(size_of(Type::f32), 4U);
}

TEST(Writer, EqualContentGivesEqualBytes) {
  const Scratch scratch;
  const std::vector<float> large = counting(100'000);
  save(sample(large), scratch / "a");
  // The heap is in another state now, in this process and in its child: what is not initialised would differ.
  const std::vector<char> litter(1'000'000, 'x');
  save(sample(large), scratch / "b");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string more_litter(123'457, 'y');
    save(sample(large), scratch / "c");
    ::_exit(more_litter.empty() ? 1 : 0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string bytes = slurp(scratch / "a");
  EXPECT_GT(bytes.size(), 2 * large.size() * sizeof(float));
  EXPECT_EQ(bytes, slurp(scratch / "b"));
  EXPECT_EQ(bytes, slurp(scratch / "c"));
}

TEST(Writer, ReadsBackWhatItWrote) {
  const Scratch scratch;
  const std::vector<float> large = counting(100'000);
  save(sample(large), scratch / "a.h5", {"{\"tool\":\"one\"}", "{}"});
  const FileReader file = open_one(scratch / "a.h5", kCheckpointFile);
  EXPECT_EQ(file.kind(), "checkpoint");
  EXPECT_EQ(file.digest(), sample(large).digest());
  EXPECT_EQ(file.provenance(), (std::vector<std::string>{"{\"tool\":\"one\"}", "{}"}));
  EXPECT_EQ(file.datasets(), (std::vector<std::string>{"/configuration", "/ids", "/note", "/parameters/layers/0/W",
                                                       "/parameters/layers/1/W", "/provenance"}));
  EXPECT_EQ(file.datasets("/parameters/layers/1"), std::vector<std::string>{"/parameters/layers/1/W"});
  EXPECT_EQ(file.info("/parameters/layers/0/W").shape, (Shape{2, 50'000}));
  EXPECT_EQ(file.info("/ids").type, Type::u16);
  EXPECT_FALSE(file.info("/note").type.has_value());
  EXPECT_EQ(file.read<float>("/parameters/layers/0/W"), large);
  EXPECT_EQ(file.read<std::uint16_t>("/ids"), (std::vector<std::uint16_t>{1, 2, 65535}));
  EXPECT_EQ(file.text("/configuration"), "{\"width\": 8}");
  EXPECT_EQ(file.text("/note"), "");
  EXPECT_EQ(file.integer("/", "width"), -8);
  EXPECT_EQ(file.number("/parameters", "epsilon"), 1e-5);
  EXPECT_EQ(file.number("/", "width"), -8);
  EXPECT_EQ(file.string("/ids", "vocabulary"), "caf\u00e9");
  EXPECT_FALSE(file.has_attribute("/", "noether_more"));
  // Aligned for any vector instruction, in the file and so in its mapping.
  for (const char* path : {"/parameters/layers/0/W", "/parameters/layers/1/W"})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.view<float>(path).data()) % 64, 0U);
}

TEST(Writer, HoldsEveryTypeAndShape) {
  const Scratch scratch;
  FileWriter file(kTensorsFile);
  const std::array<std::byte, 192> bytes{std::byte{1}};
  const std::vector<Type> types{Type::u8, Type::u16, Type::u32, Type::u64, Type::i64, Type::f32, Type::f64};
  for (const Type type : types) {
    file.array(fmt::format("/{}/scalar", name_of(type)), type, {}, bytes.data());
    file.array(fmt::format("/{}/cube", name_of(type)), type, {2, 3, 4}, bytes.data());
    file.array(fmt::format("/{}/none", name_of(type)), type, {3, 0}, nullptr);
  }
  save(std::move(file), scratch / "a.h5");
  const FileReader read = open_one(scratch / "a.h5", kTensorsFile);
  for (const Type type : types) {
    const std::string group = fmt::format("/{}/", name_of(type));
    EXPECT_EQ(read.info(group + "scalar").type, type);
    EXPECT_EQ(read.info(group + "scalar").shape, Shape{});
    EXPECT_EQ(read.info(group + "scalar").count, 1U);
    EXPECT_EQ(read.info(group + "cube").shape, (Shape{2, 3, 4}));
    EXPECT_EQ(read.info(group + "none").count, 0U);
    EXPECT_TRUE(read.read<double>(group + "none").empty());
  }
  EXPECT_EQ(read.read<std::uint32_t>("/uint32/scalar"), std::vector<std::uint32_t>{1});
}

// Python: xxhash.xxh3_128_hexdigest(lines), with each line's own hash made in the same way.
TEST(Writer, DigestIsTheHashOfSortedLines) {
  const auto hash = [](std::string_view bytes) {
    XXH128_canonical_t big_endian;
    XXH128_canonicalFromHash(&big_endian, XXH3_128bits(bytes.data(), bytes.size()));
    std::string text;
    for (const unsigned char c : big_endian.digest) text += fmt::format("{:02x}", c);
    return text;
  };
  FileWriter file(kTableFile);
  file.array<std::uint8_t>("/z", std::vector<std::uint8_t>{'a', 'b'});
  file.text("/b/text", "words");
  file.attribute("/b", "x", std::int64_t{1});
  file.attribute("/z", "q", 0.0);
  file.attribute("/z", "p", "s");
  const std::string zeros(8, '\0'), one = std::string("\1") + std::string(7, '\0');
  EXPECT_EQ(file.digest(), hash("/b\tx\tint64\t[]\t" + hash(one) + "\n" + "/b/text\t\tstring\t[]\t" + hash("words") +
                                "\n" + "/z\t\tuint8\t[2]\t" + hash("ab") + "\n" + "/z\tp\tstring\t[]\t" + hash("s") +
                                "\n" + "/z\tq\tfloat64\t[]\t" + hash(zeros) + "\n"));
}

TEST(Writer, DigestDependsOnContentAndOnNothingElse) {
  const std::vector<std::uint8_t> data{1, 2, 3, 4};
  FileWriter one(kTableFile), two(kTableFile);
  one.array<std::uint8_t>("/a", data);
  one.array<std::uint8_t>("/b", data);
  two.array<std::uint8_t>("/b", data);
  two.array<std::uint8_t>("/a", data);
  EXPECT_EQ(one.digest(), two.digest());
  std::vector<std::string> digests{one.digest()};
  const auto differs = [&](const FileWriter& file) {
    digests.push_back(file.digest());
    for (std::size_t i = 0; i + 1 < digests.size(); ++i) EXPECT_NE(digests[i], digests.back());
  };
  two.attribute("/a", "x", std::int64_t{1});
  differs(two);
  FileWriter three(kTableFile), four(kTableFile), five(kTableFile);
  three.array<std::uint8_t>("/a", {2, 2}, data);
  differs(three);
  four.array<std::uint8_t>("/a", data);
  differs(four);
  five.array(("/a"), Type::u32, {1}, data.data());
  differs(five);
}

TEST(Writer, AttributesMayBeLarge) {
  const Scratch scratch;
  FileWriter file(kTableFile);
  const std::string large(70'000, 'x');
  file.attribute("/", "large", large);
  for (int i = 0; i < 20; ++i) file.attribute("/", fmt::format("a{}", i), std::int64_t{i}); // beyond compact storage
  save(std::move(file), scratch / "a.h5");
  const FileReader read = open_one(scratch / "a.h5", kTableFile);
  EXPECT_EQ(read.string("/", "large"), large);
  EXPECT_EQ(read.integer("/", "a19"), 19);
}

TEST(Writer, RefusesWhatCannotBeStored) {
  FileWriter file(kTableFile);
  const std::vector<float> one{1};
  file.array<float>("/a/b", one);
  const auto refuses = [&](const std::string& path, const char* reason) {
    EXPECT_EQ(message([&] { file.array<float>(path, one); }), reason);
  };
  refuses("/a/b", "/a/b is added to the file twice");
  refuses("/a", "/a is added to the file twice");
  refuses("/a/b/c", "/a/b/c: /a/b is not a group");
  refuses("/provenance", "/provenance belongs to the writer itself");
  refuses("a", "\"a\" is not an absolute path of a dataset");
  refuses("/", "\"/\" is not an absolute path of a dataset");
  refuses("/a//c", "\"/a//c\" is not an absolute path of a dataset");
  refuses("/c/", "\"/c/\" is not an absolute path of a dataset");
  refuses("/c\t", "\"/c\t\" cannot be the name of a dataset");
  EXPECT_EQ(message([&] {
              file.array("/large", Type::f64, {1ULL << 61, 2}, nullptr);
            }),
            "/large: the shape [2305843009213693952, 2] is too large");
  EXPECT_EQ(message([&] { file.text("/t", std::string_view("a\0b", 3)); }), "/t: the text holds a NUL");
  EXPECT_EQ(message([&] { file.attribute("/", "noether_kind", "x"); }),
            "attribute noether_kind belongs to the writer itself");
  EXPECT_EQ(message([&] { file.attribute("/c", "x", 1.0); }), "/c has not been added to the file");
  file.attribute("/a", "x", 1.0);
  EXPECT_EQ(message([&] { file.attribute("/a", "x", 2.0); }), "attribute x of /a is added twice");
}

TEST(Writer, OpensInH5dump) {
  if (std::system("command -v h5dump > /dev/null") != 0) GTEST_SKIP() << "skipped: no h5dump";
  const Scratch scratch;
  save(sample(counting(100'000)), scratch / "a.h5");
  FILE* pipe = ::popen(("h5dump -d /ids -d /configuration " + (scratch / "a.h5") + " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output(100'000, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_NE(output.find("(0): 1, 2, 65535"), std::string::npos) << output;
  EXPECT_NE(output.find("{\"width\": 8}"), std::string::npos) << output;
  EXPECT_EQ(std::system(("h5dump -H " + (scratch / "a.h5") + " > /dev/null").c_str()), 0);
}

} // namespace
} // namespace noether::store
