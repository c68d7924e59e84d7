// All keys of a vocabulary are one product a layer, and the time of this file: 2 * vocabulary * width^2 operations for
// each layer. Everything else is linear in the number of keys.
#include "alignment/scores.h"

#include "alignment/directions.h"
#include "base/choice.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/softmax.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <limits>

namespace noether::alignment {
namespace {

constexpr std::array kEmbeddings{"raw", "normalised"};
constexpr std::int64_t kRows = 4096; ///< at a time

void copy_row(const at::Tensor& from, std::span<float> to, float factor) {
  const float* values = from.const_data_ptr<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = values[i] * factor;
}

/// Scores of one direction a head to the layer's rows of the grids.
void keep(const HeadScores& found, std::int64_t layer, std::int64_t head_width, Scores& out) {
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_width)));
  const at::Tensor cosine = found.cosine.contiguous(), product = found.product.contiguous();
  for (std::int64_t head = 0; head < out.alignment.heads(); ++head) {
    copy_row(cosine[head][0], out.alignment.at(layer, head), 1);
    copy_row(product[head][0], out.exponent.at(layer, head), scale);
  }
}

Scores empty_scores(const architecture::Config& c, std::int64_t rows) {
  return {Grid(c.layers, c.heads, rows), Grid(c.layers, c.heads, rows)};
}

} // namespace

Embedding embedding_of(std::string_view name) { return choice_of<Embedding>(name, kEmbeddings, "embedding"); }

at::Tensor keys_of(const models::Model& model, std::int64_t layer, const at::Tensor& rows, Embedding embedding) {
  const architecture::Config& c = model.config;
  const models::Layer& of = model.layers[static_cast<std::size_t>(layer)];
  const std::int64_t begin = c.heads * c.head_width, end = begin + c.kv_heads * c.head_width;
  const bool whole = embedding == Embedding::normalised;
  const at::Tensor x = whole ? models::attention_norm(model, layer, rows) : rows;
  const at::Tensor b = whole && of.b_QKV.defined() ? of.b_QKV.slice(0, begin, end) : at::Tensor();
  const at::Tensor k =
      models::linear(x, of.W_QKV.slice(0, begin, end), b, model.precision).view({x.size(0), c.kv_heads, c.head_width});
  return whole && c.qk_norm ? at::rms_norm(k, {c.head_width}, of.k_norm_gain, c.norm_epsilon) : k;
}

HeadScores score_keys(const at::Tensor& keys, const at::Tensor& directions) {
  const std::int64_t rows = keys.size(0), kv_heads = keys.size(1), d = keys.size(2), heads = directions.size(0),
                     m = directions.size(1);
  // Directions of the query heads that share a key head, side by side.
  const at::Tensor by_key = directions.reshape({kv_heads, heads / kv_heads * m, d});
  const at::Tensor product = at::bmm(by_key, keys.permute({1, 2, 0})); // [kv_heads, .. m, rows]
  const at::Tensor key_lengths = keys.square().sum(-1).sqrt().t().unsqueeze(1), lengths = by_key.norm(2, -1, true);
  const at::Tensor cosine = product / (key_lengths * lengths).clamp_min(std::numeric_limits<float>::min());
  return {cosine.reshape({heads, m, rows}), product.reshape({heads, m, rows})};
}

HeadScores score_rows(const models::Model& model, std::int64_t layer, const at::Tensor& rows, Embedding embedding,
                      const at::Tensor& directions) {
  std::vector<at::Tensor> cosine, product;
  for (std::int64_t begin = 0; begin < rows.size(0); begin += kRows) {
    const at::Tensor piece = rows.slice(0, begin, std::min(begin + kRows, rows.size(0)));
    const HeadScores found = score_keys(keys_of(model, layer, piece, embedding), directions);
    cosine.push_back(found.cosine);
    product.push_back(found.product);
  }
  return {at::cat(cosine, -1), at::cat(product, -1)};
}

Scores token_scores(const models::Model& model, const at::Tensor& directions, Embedding embedding) {
  const c10::InferenceMode guard;
  Scores scores = empty_scores(model.config, model.config.vocab_size);
  for (std::int64_t layer = 0; layer < model.config.layers; ++layer)
    keep(score_rows(model, layer, model.tokens, embedding, directions[layer].unsqueeze(1)), layer,
         model.config.head_width, scores);
  return scores;
}

Scores position_scores(const models::Model& model, const at::Tensor& directions, Embedding embedding) {
  const c10::InferenceMode guard;
  const architecture::Config& c = model.config;
  Scores scores = empty_scores(c, c.context);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const at::Tensor by_head = directions[layer].unsqueeze(1);
    if (model.positions.defined()) {
      keep(score_rows(model, layer, model.positions, embedding, by_head), layer, c.head_width, scores);
      continue;
    }
    at::Tensor sum;
    for (std::int64_t begin = 0; begin < c.vocab_size; begin += kRows) {
      const at::Tensor piece = model.tokens.slice(0, begin, std::min(begin + kRows, c.vocab_size));
      const at::Tensor part = keys_of(model, layer, piece, embedding).sum(0);
      sum = sum.defined() ? sum + part : part;
    }
    const at::Tensor mean = (sum / static_cast<double>(c.vocab_size)).unsqueeze(0);
    const at::Tensor turned =
        models::rotate_to_positions(c, mean.expand({c.context, c.kv_heads, c.head_width}).contiguous(), 0);
    keep(score_keys(turned, by_head), layer, c.head_width, scores);
  }
  return scores;
}

TextScores text_scores(const models::Model& model, const at::Tensor& directions, const text::TokenFile& tokens,
                       std::int64_t limit, Reporter& reporter) {
  const c10::InferenceMode guard;
  const architecture::Config& c = model.config;
  const auto vocabulary = static_cast<std::size_t>(c.vocab_size);
  TextScores all{empty_scores(c, c.vocab_size), Grid(c.layers, c.heads, c.vocab_size), std::vector<double>(vocabulary),
                 std::vector<std::int64_t>(vocabulary)};
  const double root = std::sqrt(static_cast<double>(c.head_width));
  std::vector<std::int64_t> ids;
  std::int64_t queries = 0;
  const models::AttentionObserver observe = [&](std::int64_t layer, const models::AttentionInputs& inputs) {
    const at::Tensor q = inputs.compared_q[0], k = inputs.compared_k[0]; // [heads, T, head_width]
    const std::int64_t T = q.size(1);
    const at::Tensor product = at::bmm(k, directions[layer].unsqueeze(-1)).squeeze(-1);
    const at::Tensor lengths = k.norm(2, -1) * directions[layer].norm(2, -1, true);
    const at::Tensor cosine = (product / lengths.clamp_min(std::numeric_limits<float>::min())).contiguous();
    const at::Tensor exponent = (product / root).contiguous();
    const at::Tensor logits = at::bmm(q, k.transpose(1, 2)) / root;
    const at::Tensor ahead = at::arange(T).unsqueeze(0) > at::arange(T).unsqueeze(1);
    const at::Tensor received =
        at::softmax(logits.masked_fill(ahead, -std::numeric_limits<float>::infinity()), -1).sum(1).contiguous();
    for (std::int64_t head = 0; head < c.heads; ++head)
      for (std::int64_t t = 0; t < T; ++t) {
        const auto id = static_cast<std::size_t>(ids[static_cast<std::size_t>(t)]);
        const auto at = static_cast<std::size_t>(head * T + t);
        all.scores.alignment.at(layer, head)[id] += cosine.const_data_ptr<float>()[at];
        all.scores.exponent.at(layer, head)[id] += exponent.const_data_ptr<float>()[at];
        all.attention.at(layer, head)[id] += received.const_data_ptr<float>()[at];
      }
  };
  const std::int64_t in_all = static_cast<std::int64_t>(tokens.size());
  const double end = static_cast<double>(limit > 0 ? std::min(limit, in_all) : in_all);
  for_each_window(model, tokens, limit, [&](const at::Tensor& window) {
    const std::int64_t T = window.size(1);
    ids.assign(window.const_data_ptr<std::int64_t>(), window.const_data_ptr<std::int64_t>() + T);
    double even = 0; // what a key gets: from each query at or after it, its share
    for (std::int64_t t = T - 1; t >= 0; --t) {
      even += 1 / static_cast<double>(t + 1);
      all.even[static_cast<std::size_t>(ids[static_cast<std::size_t>(t)])] += even;
      ++all.counts[static_cast<std::size_t>(ids[static_cast<std::size_t>(t)])];
    }
    models::hidden(model, window, models::mean_biases(c), nullptr, nullptr, &observe);
    queries += T;
    if (reporter.progress_due())
      reporter.progress(fmt::format("{} of {:.0f} tokens of {}", queries, end, tokens.name()));
  });

  for (std::size_t id = 0; id < vocabulary; ++id) all.even[id] /= static_cast<double>(queries);
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.heads; ++head)
      for (std::size_t id = 0; id < vocabulary; ++id) {
        all.attention.at(layer, head)[id] /= static_cast<float>(queries);
        if (all.counts[id] == 0) continue;
        all.scores.alignment.at(layer, head)[id] /= static_cast<float>(all.counts[id]);
        all.scores.exponent.at(layer, head)[id] /= static_cast<float>(all.counts[id]);
      }
  return all;
}

} // namespace noether::alignment
