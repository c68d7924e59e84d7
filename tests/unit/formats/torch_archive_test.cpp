// Archives that Python's own pickle and zipfile wrote (tests/golden/make_archives.py), and pickles by hand.
#include "formats/torch_archive.h"

#include "formats/foreign.h"
#include "formats/pickle.h"
#include "formats/zip.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace noether::formats {
namespace {

using nlohmann::json;
using store::message;
using store::slurp;

std::string golden(const std::string& name) { return slurp(std::string(NOETHER_TEST_DATA) + "/formats/" + name); }

std::vector<float> numbers(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(*count_of(tensor.shape)));
  copy(tensor, values.data());
  return values;
}

TEST(TorchArchive, TensorsAndWhatLiesBesideThem) {
  const std::string bytes = golden("authors.pt");
  const TorchArchive archive = parse_torch_archive(bytes, "x");
  EXPECT_EQ(archive.tensors.size(), 28U);
  EXPECT_EQ(archive.settings["config"], json::parse(R"({"context_length": 8, "n_embd": 4, "n_head": 2, "n_layer": 1,
                                                        "vocab_size": 6})"));
  EXPECT_EQ(archive.settings["symmetry_breaking"]["bK"], true);
  EXPECT_EQ(archive.settings["update"], 12);
  const Tensor& tokens = archive.tensors.at("model.transformer.wte.weight");
  EXPECT_EQ(tokens.shape, (std::vector<std::int64_t>{6, 4}));
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(numbers(tokens)[i], static_cast<float>(i));
  EXPECT_EQ(archive.tensors.at("model.lm_head.weight").data, tokens.data); // one storage for both
}

TEST(TorchArchive, StridesOffsetsAndZip64) {
  const std::string bytes = golden("views.pt");
  const TorchArchive archive = parse_torch_archive(bytes, "x");
  // Numbers 1 to 5 of 0 to 5, columns 1 apart and rows 3: torch.arange(6.0)[1:].as_strided((2, 2), (1, 3)).
  EXPECT_EQ(numbers(archive.tensors.at("list.0")), (std::vector<float>{1, 4, 2, 5}));
  EXPECT_EQ(archive.settings,
            json::parse(R"({"list": [[1, -2, 1099511627776, null]], "text": "\u00e9", "real": 0.1, "7": true})"));
}

TEST(TorchArchive, FilesOfPyTorch) {
  const std::string folder = NOETHER_SHARED "/data/files/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: no ../shared";
  const MappedFile one(folder + "candle_test.pt"), many(folder + "executorch_kws_model.pth");
  const Tensors tensors = parse_torch_archive(one.bytes(), "x").tensors;
  EXPECT_EQ(tensors.at("test").shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(tensors.at("test").type, TensorType::i64);
  const Tensors trained = parse_torch_archive(many.bytes(), "x").tensors;
  EXPECT_EQ(trained.size(), 56U);
  EXPECT_EQ(trained.at("feature_extractor.1.num_batches_tracked").type, TensorType::i64);
  const MappedFile arrays(folder + "candle_test.npz");
  EXPECT_EQ(message([&] { parse_torch_archive(arrays.bytes(), "x"); }),
            "x: a zip archive without a data.pkl: torch.save did not write it");
}

TEST(TorchArchive, ACallOfAnythingElseIsRefusedByName) {
  EXPECT_EQ(message([] { parse_torch_archive(golden("call.pt"), "x"); }),
            "x: asks for posix.system, which is neither a tensor nor plain data: refused");
}

TEST(TorchArchive, DamageIsAnErrorOfOneLine) {
  for (const char* name : {"authors.pt", "views.pt", "call.pt"}) {
    SCOPED_TRACE(name);
    const std::string bytes = golden(name);
    damage_in_every_way(bytes, [&](std::string_view damaged) {
      if (damaged == bytes && std::string(name) == "call.pt") return; // refused when whole
      parse_torch_archive(damaged, "x");
    });
  }
}

std::string pickle_says(std::string_view bytes, PickleName known = PickleName::refused) {
  return message([&] { parse_pickle(bytes, "x", [&](std::string_view) { return known; }); });
}

TEST(Pickle, NothingRuns) {
  // Python's own spellings of one call, protocols 0 to 4.
  for (const std::string_view pickled : {"cos\nsystem\n(Vtouch called\ntR.",
                                         "\x80\x02"
                                         "cos\nsystem\nX\x02\0\0\0ls\x85R.",
                                         "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R."})
    EXPECT_EQ(pickle_says(pickled), "x: asks for os.system, which is neither a tensor nor plain data: refused");
  EXPECT_EQ(pickle_says("(Vls\nios\nsystem\n."), "x: pickle operation 0x56 at byte 1 is beyond plain data: refused");
  EXPECT_EQ(pickle_says("(ios\nsystem\n."), "x: pickle operation 0x69 at byte 1 is beyond plain data: refused");
  EXPECT_EQ(pickle_says("cbuiltins\n\x1b[2Jeval\n."),
            "x: asks for builtins.?[2Jeval, which is neither a tensor nor plain data: refused");
}

TEST(Pickle, NumbersAsPythonWritesThem) {
  const auto integer = [](std::string_view bytes) {
    return parse_pickle(bytes, "x", [](std::string_view) { return PickleName::refused; }).root->integer;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(integer("\x80\x02J\xfe\xff\xff\xff."sv), -2);
  EXPECT_EQ(integer("\x80\x02M\xff\xff."sv), 65535);
  EXPECT_EQ(integer("\x80\x02\x8a\x05\x00\x00\x00\x00\x80."sv), -549755813888);
  EXPECT_EQ(integer("\x80\x02\x8a\x06\x00\x00\x00\x00\x00\x01."sv), 1099511627776);
  EXPECT_EQ(integer("\x80\x02\x8a\x00."sv), 0);
  EXPECT_EQ(pickle_says("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."sv),
            "x: a whole number of 9 bytes, which is not supported");
}

TEST(Pickle, WhatIsNotThereIsNotUsed) {
  using namespace std::string_view_literals;
  for (const std::string_view damaged :
       {"."sv,      "0."sv,    "2."sv,      "t."sv,   "e."sv,    "\x85."sv, "N(\x85."sv, "(0."sv,
        "h\x01."sv, "]s."sv,   "]NNs."sv,   "}Na."sv, "}(Nu."sv, "(Nd."sv,  "Nb."sv,     "NR."sv,
        "NNR."sv,   "\x93."sv, "NN\x93."sv, "q\0."sv, "Q."sv,    "(."sv})
    EXPECT_TRUE(pickle_says(damaged).starts_with("x: damaged pickle at byte ")) << damaged;
  for (const std::string_view cut :
       {""sv, "N"sv, "X\xff\xff\xff\xff."sv, "\x8d\xff\xff\xff\xff\xff\xff\xff\xff."sv, "cos\nsystem"sv, "J\0"sv})
    EXPECT_TRUE(pickle_says(cut).starts_with("x: cut short: a pickle that ends after ")) << cut;
}

/// A stored zip archive of one pickle.
std::string archive_of(const std::string& pickled) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value);
    return text;
  };
  const std::string name = "m/data.pkl";
  const std::string sizes = number(0, 4) + number(pickled.size(), 4) + number(pickled.size(), 4);
  const std::string common = number(0, 2) + number(0, 2) + number(0, 4) + sizes + number(name.size(), 2) + number(0, 2);
  const std::string local = "PK\3\4" + number(20, 2) + common + name + pickled;
  const std::string entry = "PK\1\2" + number(20, 2) + number(20, 2) + common + number(0, 2) + number(0, 2) +
                            number(0, 2) + number(0, 4) + number(0, 4) + name;
  return local + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) + number(entry.size(), 4) +
         number(local.size(), 4) + number(0, 2);
}

// A list that holds itself; lists of two, of two, ... which are 2^60 values when walked through; a long text in many
// places.
TEST(TorchArchive, WhatGrowsWhenReadIsRefused) {
  const auto says = [](const std::string& pickled) {
    return message([&] { parse_torch_archive(archive_of(pickled), "x"); });
  };
  EXPECT_EQ(says("\x80\x02]2a."), "x: values nested without end");
  std::string doubled = "\x80\x02N";
  for (int i = 0; i < 30; ++i) doubled += "2\x86";
  EXPECT_EQ(says(doubled + "."), "x: more values than its bytes stand for");
  std::string long_text("\x80\x02]X\0\0\x10\0", 8);
  long_text += std::string(1 << 20, 'a') + "q";
  long_text += '\0';
  long_text += "a";
  for (int i = 0; i < 1000; ++i) long_text += std::string("h\0a", 3);
  EXPECT_EQ(says(long_text + "."), "x: more values than its bytes stand for");
}

TEST(Zip, CompressedAndEncryptedEntriesAreNamed) {
  std::string bytes = archive_of("\x80\x02N.");
  const std::size_t directory = bytes.find("PK\1\2");
  ASSERT_EQ(parse_stored_zip(bytes, "x").at("m/data.pkl"), "\x80\x02N.");
  bytes[directory + 10] = 8;
  EXPECT_EQ(message([&] { parse_stored_zip(bytes, "x"); }),
            "x: m/data.pkl is compressed (method 8), and only stored entries are read");
  bytes[directory + 8] = 1;
  EXPECT_EQ(message([&] { parse_stored_zip(bytes, "x"); }), "x: m/data.pkl is encrypted");
  EXPECT_EQ(message([] { parse_stored_zip(std::string(100, 'P'), "x"); }),
            "x: cut short: a zip archive without its directory, which comes last");
}

} // namespace
} // namespace noether::formats
