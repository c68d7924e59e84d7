#include "formats/safetensors.h"

#include "formats/foreign.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace noether::formats {
namespace {

using store::message;

std::vector<float> numbers(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(*count_of(tensor.shape)));
  copy(tensor, values.data());
  return values;
}

const std::string kTwo = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
                         R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} )";

TEST(Safetensors, TensorsAreFoundWhereTheHeaderSays) {
  const std::string bytes = safetensors(kTwo, {7, 0, 1, 2, 3, 4, 5});
  const Tensors tensors = parse_safetensors(bytes, "x");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(numbers(tensors.at("a")), std::vector<float>{7});
  EXPECT_EQ(numbers(tensors.at("b")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers(swapped(tensors.at("b"), 0, 1)), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers(rows(tensors.at("b"), 1, 1)), (std::vector<float>{3, 4, 5}));
  // Its columns 0 and 1 are rows of the transposed one: one pair of rows, each of two numbers, in each other's place.
  const Tensor pair = split(rows(swapped(tensors.at("b"), 0, 1), 0, 2), 0, 2);
  EXPECT_EQ(pair.shape, (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(numbers(pair), (std::vector<float>{0, 3, 1, 4}));
  EXPECT_EQ(numbers(swapped(pair, 1, 2)), (std::vector<float>{0, 1, 3, 4}));
}

// Written by a program in R.
TEST(Safetensors, AFileOfAnotherProgram) {
  const std::string path = NOETHER_SHARED "/data/files/mlverse_hello.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no ../shared";
  const MappedFile file(path);
  const Tensors tensors = parse_safetensors(file.bytes(), path);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors.at("hello").shape, (std::vector<std::int64_t>{10, 10}));
  EXPECT_EQ(tensors.at("world").shape, (std::vector<std::int64_t>{5, 10}));
  for (const auto& [name, tensor] : tensors)
    for (const float x : numbers(tensor)) EXPECT_TRUE(std::isfinite(x));
}

TEST(Safetensors, EveryRealTypeBecomesFloat32) {
  const auto one = [](TensorType type, const auto& value) {
    return numbers(contiguous(type, {1}, reinterpret_cast<const char*>(&value)))[0];
  };
  const auto half = [&](std::uint16_t bits) { return one(TensorType::f16, bits); };
  // IEEE 754-2019, table 3.5 and its examples: the largest, the smallest normal and subnormal ones, a third.
  EXPECT_EQ(half(0x3C00), 1.0F);
  EXPECT_EQ(half(0xC000), -2.0F);
  EXPECT_EQ(half(0x7BFF), 65504.0F);
  EXPECT_EQ(half(0x0400), 0x1p-14F);
  EXPECT_EQ(half(0x03FF), 0x1.FF8p-15F);
  EXPECT_EQ(half(0x8001), -0x1p-24F);
  EXPECT_EQ(half(0x3555), 0.333251953125F);
  EXPECT_TRUE(std::signbit(half(0x8000)) && half(0x8000) == 0);
  EXPECT_EQ(half(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(half(0x7E01)));
  EXPECT_EQ(one(TensorType::bf16, std::uint16_t{0x3FC0}), 1.5F);
  EXPECT_EQ(one(TensorType::bf16, std::uint16_t{0xC2F7}), -123.5F);
  EXPECT_EQ(one(TensorType::f64, 0.1), 0.1F);
  EXPECT_EQ(message([&] { one(TensorType::i64, std::int64_t{1}); }), "expected real numbers, found int64");
}

TEST(Safetensors, WhatDoesNotFitIsSaid) {
  const auto says = [](const std::string& header, std::size_t count = 1) {
    return message([&] { parse_safetensors(safetensors(header, std::vector<float>(count)), "x"); });
  };
  EXPECT_EQ(says(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
            "x: a: shape [2] of F32 does not fit into bytes 0 to 4");
  EXPECT_EQ(says(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
            "x: a: shape [4294967296, 4294967296] of F32 does not fit into bytes 0 to 0");
  EXPECT_EQ(says(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
            "x: cut short: a ends 8 bytes after the header, and 4 are there");
  EXPECT_EQ(says(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})"),
            "x: a: numbers of type F8_E4M3, which is not supported");
  EXPECT_EQ(says(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
            "x: a: expected dtype, shape and two data_offsets");
  EXPECT_EQ(
      says(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
      "x: the numbers of its tensors overlap at byte 0 after the header");
  EXPECT_EQ(says(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 2),
            "x: the numbers of its tensors leave a gap at byte 0 after the header");
  EXPECT_EQ(says("{}"), "x: 4 bytes after its last tensor");
  EXPECT_EQ(says("[1]"), "x: the header of a safetensors file is a JSON object, and here it is not");
  EXPECT_EQ(says(R"({"a\nb":1})"), "x: a?b: expected dtype, shape and two data_offsets");
  EXPECT_EQ(message([] { parse_safetensors(std::string(8, '\xff') + "{}", "x"); }),
            "x: cut short: its header has 18446744073709551615 bytes, and 2 are there");
}

TEST(Safetensors, DamageIsAnErrorOfOneLine) {
  const std::string bytes = safetensors(kTwo, {7, 0, 1, 2, 3, 4, 5});
  damage_in_every_way(bytes, [](std::string_view damaged) { parse_safetensors(damaged, "x"); });
}

} // namespace
} // namespace noether::formats
