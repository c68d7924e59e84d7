// How a model's keys lie to given directions. Source: arXiv 2601.22257, the analysis of preferred tokens (the method
// note's section 6).
#pragma once

#include "base/reporter.h"
#include "models/model.h"
#include "text/token_file.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace noether::alignment {

/// The key of an embedding t. raw: W_K t, as in the published analysis. normalised: what the layer would make of it,
/// W_K norm(t) + b_K and the norm of keys, where there are any.
enum class Embedding { raw, normalised };
Embedding embedding_of(std::string_view name);

/// [rows, kv_heads, head_width], before any rotation. rows: [n, width].
at::Tensor keys_of(const models::Model& model, std::int64_t layer, const at::Tensor& rows, Embedding embedding);

/// Cosines and products of keys with m directions of each query head: [heads, m, rows].
struct HeadScores {
  at::Tensor cosine, product;
};
/// keys: [rows, kv_heads, head_width], directions: [heads, m, head_width]. A key of no length has cosine 0.
HeadScores score_keys(const at::Tensor& keys, const at::Tensor& directions);
/// The same for rows of embeddings, a few thousand at a time: their keys are never all in memory.
HeadScores score_rows(const models::Model& model, std::int64_t layer, const at::Tensor& rows, Embedding embedding,
                      const at::Tensor& directions);

/// One number for each layer, query head and row (a token, or a position).
class Grid {
public:
  Grid() = default;
  Grid(std::int64_t layers, std::int64_t heads, std::int64_t rows)
      : layers_(layers), heads_(heads), rows_(rows), values_(static_cast<std::size_t>(layers * heads * rows)) {}
  std::int64_t layers() const { return layers_; }
  std::int64_t heads() const { return heads_; }
  std::int64_t rows() const { return rows_; }
  std::span<float> at(std::int64_t layer, std::int64_t head) {
    return {values_.data() + (layer * heads_ + head) * rows_, static_cast<std::size_t>(rows_)};
  }
  std::span<const float> at(std::int64_t layer, std::int64_t head) const {
    return {values_.data() + (layer * heads_ + head) * rows_, static_cast<std::size_t>(rows_)};
  }

private:
  std::int64_t layers_ = 0, heads_ = 0, rows_ = 0;
  std::vector<float> values_;
};

struct Scores {
  Grid alignment; ///< cos(key, direction)
  Grid exponent;  ///< key . direction / sqrt(head_width): by its exp the direction multiplies the key's weight
};

/// Of every token's embedding. directions: [layers, heads, head_width]. Throws Error when memory does not suffice.
Scores token_scores(const models::Model& model, const at::Tensor& directions, Embedding embedding);

/// Of every position. Learned positions: of their embeddings' keys. With RoPE: of the vocabulary's mean key, turned to
/// each position.
Scores position_scores(const models::Model& model, const at::Tensor& directions, Embedding embedding);

/// Of the keys that tokens have in a text, with all that stands before them: means over a token's occurrences.
struct TextScores {
  Scores scores;                    ///< rows are the vocabulary's; 0 for a token that does not occur
  Grid attention;                   ///< the share of a head's attention that a token's occurrences get
  std::vector<double> even;         ///< the share that they would get if every query attended evenly
  std::vector<std::int64_t> counts; ///< occurrences
};
/// Over the first `limit` tokens in windows of the model's context, with mean biases. Keys are those that are compared:
/// after the rotation.
TextScores text_scores(const models::Model& model, const at::Tensor& directions, const text::TokenFile& tokens,
                       std::int64_t limit, Reporter& reporter);

} // namespace noether::alignment
