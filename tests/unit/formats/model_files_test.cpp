#include "formats/model_files.h"
#include "formats/safetensors.h"

#include "formats/foreign.h"
#include "formats/model_layouts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <numeric>

namespace noether::formats {
namespace {

using namespace architecture;
using nlohmann::json;
using store::message;
using store::Scratch;
using store::spill;

const std::string kData = NOETHER_SHARED "/data/";

bool no_shared() { return !std::filesystem::exists(kData); }

std::vector<float> parameter(const Checkpoint& checkpoint, const std::string& name) {
  for (const Parameter& p : checkpoint.layout)
    if (p.name == name) {
      const float* begin = checkpoint.parameters.data() + p.offset;
      return {begin, begin + p.count};
    }
  ADD_FAILURE() << name;
  return {};
}

// What a script of another language made of the same files; model_test compares those with the other programs' logits.
TEST(LoadModel, IsWhatAnotherImporterMade) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  const std::pair<std::string, std::string> files[] = {{"gpt2-tiny", ""},
                                                       {"llama-tiny-gqa", "/model.safetensors"},
                                                       {"symmetry-symmetric", "/model.pt"},
                                                       {"symmetry-bqbv", "/model.pt"}};
  for (const auto& [name, file] : files) {
    SCOPED_TRACE(name);
    const Checkpoint got = load_model(kData + "golden/" + name + file, 4);
    const Checkpoint expected = load_model(std::string(NOETHER_TEST_DATA) + "/models/" + name + ".h5", std::nullopt);
    EXPECT_EQ(to_json(got.config), to_json(expected.config));
    ASSERT_EQ(got.parameters.size(), expected.parameters.size());
    EXPECT_TRUE(std::ranges::equal(got.parameters.span(), expected.parameters.span()));
  }
}

// Five layers of which the rows of W_Q and W_K were put in order by Hugging Face's converter, or not at all.
TEST(LoadModel, TheTwoLayoutsOfLlamaAreOneModel) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  const std::string folder = kData + "models/llama_demo_rand/";
  const Scratch scratch;
  std::filesystem::create_symlink(folder + "demo_rand_params.pth", scratch / "consolidated.00.pth");
  std::filesystem::create_symlink(folder + "demo_config.json", scratch / "params.json");
  const Checkpoint meta = load_model(scratch.folder(), std::nullopt), face = load_model(folder + "hf", std::nullopt);
  EXPECT_EQ(meta.config.context, 128) << "the size of its mask";
  EXPECT_EQ(meta.config.hidden, 172);
  EXPECT_TRUE(std::ranges::equal(meta.parameters.span(), face.parameters.span()));
}

TEST(LoadModel, TheAuthorsArchiveSaysWhatItIs) {
  const Checkpoint checkpoint = load_model(std::string(NOETHER_TEST_DATA) + "/formats/authors.pt", std::nullopt);
  const Config& c = checkpoint.config;
  EXPECT_EQ(c.heads, 2);
  EXPECT_EQ(c.head_width, 2);
  EXPECT_EQ(c.hidden, 16);
  EXPECT_EQ(c.context, 8);
  EXPECT_EQ(c.activation, Activation::prelu);
  EXPECT_EQ(c.symmetry_break, Break::qk) << "as the archive says; the buffers of values are there, and zero";
  EXPECT_EQ(c.q_bias.means, std::vector<double>{0.5});
  EXPECT_EQ(c.q_bias.deviations, (std::vector<double>{0.05, 0.15}));
  EXPECT_EQ(c.k_bias.deviations, (std::vector<double>{0.12, 0.08}));
  EXPECT_EQ(parameter(checkpoint, "embedding/tokens")[23], 23);
  EXPECT_EQ(parameter(checkpoint, "embedding/positions")[0], 24);
  // 56 numbers of embeddings, 5 x 2 + 2 x 4 + 2 of distributions and biases, of which bV is 4; 64 of the mask.
  const float first = 56 + 2 * 4 + 4 * 2 + 2 * 2 + 4 + 64;
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/W_Q")[0], first);
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/W_K")[0], first + 16);
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/W_V")[15], first + 47);
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/b_V")[3], first + 48 + 11);
  EXPECT_EQ(parameter(checkpoint, "head/norm_bias")[3], first + 48 + 12 + 16 + 4 + 64 + 16 + 16 + 64 + 4 + 24 - 1);
  EXPECT_EQ(message([] { load_model(std::string(NOETHER_TEST_DATA) + "/formats/authors.pt", 4); }),
            std::string(NOETHER_TEST_DATA) + "/formats/authors.pt: --heads 4, and the file says 2");
}

/// A model of the authors' without their archive: one layer, width 4, two heads, numbers 0, 1, 2, ... each.
struct Bare {
  std::vector<float> numbers;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  json config;

  explicit Bare(bool hugging_face = false) : numbers(256) {
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const std::string sa = hugging_face ? "attn" : "sa", ln = hugging_face ? "ln_" : "ln";
    const auto matrix = [&](std::int64_t out, std::int64_t in) {
      return hugging_face ? std::vector{in, out} : std::vector{out, in};
    };
    shapes = {{"wte.weight", {6, 4}},
              {"wpe.weight", {8, 4}},
              {"h.0." + sa + ".c_attn.weight", matrix(12, 4)},
              {"h.0." + sa + ".c_attn.bias", {12}},
              {"h.0." + sa + ".c_proj.weight", matrix(4, 4)},
              {"h.0." + sa + ".c_proj.bias", {4}},
              {"h.0.mlp.c_fc.weight", matrix(16, 4)},
              {"h.0.mlp.c_fc.bias", {16}},
              {"h.0.mlp.c_proj.weight", matrix(4, 16)},
              {"h.0.mlp.c_proj.bias", {4}}};
    for (const std::string& norm : {"h.0." + ln + "1", "h.0." + ln + "2", std::string("ln_f")})
      for (const char* part : {".weight", ".bias"}) shapes[norm + part] = {4};
    config = {{"model_type", "gpt2"}, {"n_layer", 1},    {"n_head", 2},       {"n_embd", 4},
              {"n_positions", 8},     {"vocab_size", 6}, {"n_inner", nullptr}};
  }

  Checkpoint load(std::optional<std::int64_t> heads = std::nullopt, const std::string& prefix = "") const {
    ForeignModel model{.name = "x", .tensors = {}};
    for (const auto& [name, shape] : shapes)
      model.tensors.emplace(prefix + name,
                            contiguous(TensorType::f32, shape, reinterpret_cast<const char*>(numbers.data())));
    model.settings = config;
    model.settings_name = "config.json";
    return from_foreign(model, heads);
  }
  std::string says(std::optional<std::int64_t> heads = std::nullopt) const {
    return message([&] { load(heads); });
  }
};

TEST(FromForeign, HuggingFacesMatricesAreTurned) {
  const Bare bare(true);
  const Checkpoint checkpoint = bare.load();
  EXPECT_EQ(checkpoint.config.activation, Activation::gelu_tanh);
  // Number 12 i + j is the weight from input i to output j; the outputs are those of q, k and v.
  const std::vector<float> keys = parameter(checkpoint, "layers/0/attention/W_K");
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(keys[j * 4 + i], static_cast<float>(12 * i + 4 + j));
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/b_V"), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(parameter(checkpoint, "layers/0/mlp/W_down")[1], 4) << "from input 1 to output 0";
  for (const char* prefix : {"transformer.", "model.transformer.", "module."})
    EXPECT_EQ(bare.load({}, prefix).digest, checkpoint.digest) << prefix;
}

TEST(FromForeign, TheAuthorsMatricesAreNot) {
  Bare bare;
  const Checkpoint checkpoint = bare.load(2);
  EXPECT_EQ(checkpoint.config.activation, Activation::gelu);
  EXPECT_EQ(checkpoint.config.symmetry_break, Break::none);
  EXPECT_EQ(parameter(checkpoint, "layers/0/attention/W_K")[1], 17);
  EXPECT_EQ(bare.says(), "x: does not say how many heads it has (give --heads)");
  EXPECT_EQ(bare.says(3), "x: 3 heads do not divide a width of 4");
  // Without learned positions: rotary ones, on the half of a head's components that is the authors' default.
  bare.shapes.erase("wpe.weight");
  bare.shapes["h.0.sa.causal_mask"] = {1, 1, 8, 8};
  EXPECT_EQ(bare.says(2), "x: --rope-fraction 0.5 of a head width of 2 leaves nothing to rotate");
  const Checkpoint rotary = bare.load(1);
  EXPECT_EQ(rotary.config.position, Position::rope);
  EXPECT_EQ(rotary.config.context, 8);
  EXPECT_EQ(rotary.config.rotated(), 2);
  // Values that were drawn: nothing else tells that they are used.
  bare = Bare();
  for (const char* name : {"mean_V", "std_V"}) bare.shapes[std::string("h.0.sa.") + name] = {2};
  bare.shapes["h.0.sa.bV"] = {2, 2};
  const Checkpoint broken = bare.load();
  EXPECT_EQ(broken.config.heads, 2);
  EXPECT_EQ(broken.config.symmetry_break, Break::v);
  EXPECT_EQ(broken.config.v_bias.means, (std::vector<double>{0, 1}));
}

TEST(FromForeign, WhatIsMissingOrLeftOverIsNamed) {
  Bare bare(true);
  bare.shapes.erase("h.0.ln_2.bias");
  EXPECT_EQ(bare.says(), "x: no tensor h.0.ln_2.bias");
  bare = Bare(true);
  bare.shapes["h.0.ln_2.bias"] = {5};
  EXPECT_EQ(bare.says(), "x: h.0.ln_2.bias: expected shape [4], found [5]");
  bare = Bare(true);
  bare.shapes["h.1.ln_2.bias"] = {4};
  EXPECT_EQ(bare.says(), "x: tensor h.1.ln_2.bias has no place in a model of the family gpt2");
  bare = Bare(true);
  bare.shapes["h.0.attn.bias"] = {1, 1, 8, 8}; // the mask
  EXPECT_EQ(bare.says(), "");
  bare.shapes["lm_head.weight"] = {6, 4};
  EXPECT_EQ(bare.says(), "");
  bare.shapes["lm_head.weight"] = {6, 5};
  EXPECT_EQ(bare.says(), "x: lm_head.weight: expected shape [6, 4], found [6, 5]");
  bare = Bare(true);
  bare.shapes.erase("h.0.attn.c_attn.weight");
  EXPECT_TRUE(bare.says().starts_with("x: none of the models that are known: ")) << bare.says();
}

TEST(FromForeign, SettingsThatWouldComputeSomethingElseAreRefused) {
  const auto says = [](const char* field, const json& value) {
    Bare bare(true);
    bare.config[field] = value;
    return bare.says();
  };
  EXPECT_EQ(says("model_type", "gptj"), "config.json: model_type: expected gpt2, found \"gptj\"");
  EXPECT_EQ(says("scale_attn_by_inverse_layer_idx", true),
            "config.json: scale_attn_by_inverse_layer_idx: expected false, found true");
  EXPECT_EQ(says("activation_function", "tanh"),
            "config.json: activation_function: expected gelu_new, gelu, relu or silu, found \"tanh\"");
  EXPECT_EQ(says("n_layer", 1 << 20), "x: 1048576 layers in 16 tensors");
  EXPECT_EQ(says("n_layer", -1), "config.json: n_layer: expected a whole number from 1 to 16777216, found -1");
  EXPECT_EQ(says("n_layer", 0.5), "config.json: n_layer: expected a whole number from 1 to 16777216, found 0.5");
  EXPECT_EQ(says("n_layer", nullptr), "config.json: n_layer: expected a whole number, found none");
  EXPECT_EQ(says("n_head", 3), "config.json: 3 heads do not divide a width of 4");
  EXPECT_EQ(says("vocab_size", 7), "x: wte.weight: expected shape [7, 4], found [6, 4]");
  EXPECT_EQ(says("layer_norm_epsilon", -1), "x: --norm-epsilon: expected a positive number, found -1");
  EXPECT_EQ(says("tie_word_embeddings", false), "x: no tensor lm_head.weight");
}

TEST(LoadModel, LlamaOfOtherKindsIsRefused) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  const std::string folder = kData + "golden/llama-tiny-gqa/";
  const Scratch scratch;
  std::filesystem::create_symlink(folder + "model.safetensors", scratch / "model.safetensors");
  const auto says = [&](const char* field, const json& value) {
    json config = json::parse(store::slurp(folder + "config.json"));
    config[field] = value;
    spill(scratch / "config.json", config.dump());
    return message([&] { load_model(scratch.folder(), std::nullopt); });
  };
  const std::string config = scratch / "config.json";
  EXPECT_EQ(says("model_type", "mistral"), config + ": model_type: expected llama, found \"mistral\"");
  EXPECT_EQ(says("rope_scaling", {{"type", "yarn"}, {"factor", 2}}),
            config + ": rope_scaling: rope_type: expected default, linear or llama3, found \"yarn\"");
  EXPECT_EQ(says("rope_parameters", {{"rope_type", "llama3"}, {"factor", 8}}),
            config + ": rope_parameters: original_max_position_embeddings: expected a whole number, found none");
  EXPECT_EQ(says("rope_scaling", {{"type", "linear"}, {"factor", -2}}),
            scratch / "model.safetensors" + ": the rotations' scaling: expected a positive factor, and low below high, "
                                            "found -2, 1 and 4");
  EXPECT_EQ(says("mlp_bias", true), config + ": mlp_bias: expected the same as attention_bias, found true");
  EXPECT_EQ(says("tie_word_embeddings", true), scratch / "model.safetensors" +
                                                   ": lm_head.weight differs from model.embed_tokens.weight, which its "
                                                   "settings say it is");
  EXPECT_EQ(says("rope_parameters", nullptr), "") << "10000 is what is left out";
}

// A file of llama-tiny-gqa, cut in two by tensors.
TEST(LoadModel, SeveralFilesAreOneModel) {
  if (no_shared()) GTEST_SKIP() << "skipped: no ../shared";
  const std::string folder = kData + "golden/llama-tiny-gqa/", bytes = store::slurp(folder + "model.safetensors");
  const Tensors tensors = parse_safetensors(bytes, "whole");
  const Scratch scratch;
  std::filesystem::create_symlink(folder + "config.json", scratch / "config.json");
  json headers[2], map;
  std::string data[2];
  const std::string names[2] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  std::size_t number = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t part = number++ % 2, length = static_cast<std::size_t>(*count_of(tensor.shape) * 4);
    headers[part][name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {data[part].size(), data[part].size() + length}}};
    data[part].append(tensor.data, length);
    map[name] = names[part];
  }
  for (const std::size_t part : {0U, 1U}) {
    const std::string header = headers[part].dump();
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    spill(scratch / names[part], length + header + data[part]);
  }
  const std::string index = scratch / "model.safetensors.index.json";
  const auto says = [&](const json& weights) {
    spill(index, json{{"weight_map", weights}}.dump());
    return message([&] { load_model(scratch.folder(), std::nullopt); });
  };
  EXPECT_EQ(says(map), "");
  const Checkpoint found = load_model(scratch.folder(), std::nullopt), whole = load_model(folder, std::nullopt);
  EXPECT_EQ(found.digest, whole.digest);
  EXPECT_EQ(load_model(index, std::nullopt).digest, whole.digest);

  spill(index, "[]");
  EXPECT_EQ(message([&] { load_model(scratch.folder(), std::nullopt); }),
            index + ": expected a JSON object with a weight_map, of a file for each tensor");
  json wrong = map;
  wrong["lm_head.weight"] = "../elsewhere.safetensors";
  EXPECT_EQ(says(wrong), index + ": lm_head.weight: expected the name of a file in this folder, found "
                                 "\"../elsewhere.safetensors\"");
  wrong = map;
  wrong["extra"] = "none.safetensors";
  EXPECT_EQ(says(wrong), scratch / "none.safetensors" + ": no such file");
  wrong["extra"] = names[0];
  EXPECT_EQ(says(wrong), scratch / names[0] + ": no tensor extra, which model.safetensors.index.json says is there");
  wrong = map;
  wrong.erase("lm_head.weight");
  EXPECT_NE(says(wrong).find("tensors, of which model.safetensors.index.json names"), std::string::npos);
  spill(scratch / "consolidated.01.pth", "");
  EXPECT_EQ(says(map),
            scratch.folder() + ": matrices cut into parts for several processors, which are not put together");
}

TEST(LoadModel, FilesThatLackTheOther) {
  const Scratch scratch;
  EXPECT_EQ(message([&] { load_model(scratch.folder(), std::nullopt); }),
            scratch.folder() + ": a folder without model.safetensors, pytorch_model.bin, consolidated.00.pth, "
                               "model.safetensors.index.json, pytorch_model.bin.index.json");
  const std::string path = scratch / "model.safetensors";
  spill(path, safetensors(R"({"h.0.attn.c_attn.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", {1}));
  EXPECT_EQ(message([&] { load_model(path, std::nullopt); }),
            path + ": no config.json beside it, which says what the tensors do not");
  spill(scratch / "config.json", "[]");
  EXPECT_EQ(message([&] { load_model(path, std::nullopt); }), scratch / "config.json" + ": expected a JSON object");
  spill(scratch / "old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  EXPECT_EQ(message([&] { load_model(scratch / "old.pt", std::nullopt); }),
            scratch / "old.pt" + ": saved by a PyTorch before 1.6; load and save it with a newer one");
}

} // namespace
} // namespace noether::formats
