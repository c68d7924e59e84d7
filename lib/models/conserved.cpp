// In double: L is a small difference of large products.
#include "models/conserved.h"

#include "models/model.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include <cmath>

namespace noether::models {
namespace {

/// One layer's factors by key head, float64: rows are components, columns what a rotation leaves alone.
struct Factors {
  at::Tensor q, k, v, o; ///< [kv_heads, head_width, ..]
};

Factors factors(const Layer& layer, const architecture::Config& c) {
  const std::int64_t d = c.head_width, Q = c.heads * d, K = c.kv_heads * d, group = c.heads / c.kv_heads;
  const at::Tensor W = layer.W_QKV.to(at::kDouble);
  at::Tensor all = layer.b_QKV.defined() ? at::cat({W, layer.b_QKV.to(at::kDouble).unsqueeze(1)}, 1) : W;
  const auto by_head = [&](std::int64_t begin, std::int64_t end) {
    return all.slice(0, begin, end).view({-1, d, all.size(1)});
  };
  // The query heads of a key head lie side by side: their columns are all turned by the same R.
  const at::Tensor q = by_head(0, Q).view({c.kv_heads, group, d, -1}).transpose(1, 2).reshape({c.kv_heads, d, -1});
  const at::Tensor o = layer.W_O
                           .to(at::kDouble) // [width, heads * d]
                           .t()
                           .reshape({c.kv_heads, group, d, c.width})
                           .transpose(1, 2)
                           .reshape({c.kv_heads, d, -1});
  return {q, by_head(Q, Q + K), by_head(Q + K, Q + 2 * K), o};
}

/// Of matrices [kv_heads, d, d] what stays conserved with RoPE, where only components that are not rotated may be mixed
/// freely, and of a rotated pair (i, i + rotated / 2) only rotations and scalings of both: of an antisymmetric matrix
/// the pair's own entry, of a symmetric one the mean of its two diagonal ones.
at::Tensor left_by_rope(const at::Tensor& matrices, const architecture::Config& c, bool symmetric) {
  const std::int64_t rotated = c.rotated();
  if (rotated == 0) return matrices;
  at::Tensor kept = at::zeros_like(matrices);
  kept.slice(1, rotated).slice(2, rotated).copy_(matrices.slice(1, rotated).slice(2, rotated));
  const auto entry = [](const at::Tensor& of, std::int64_t row, std::int64_t column) {
    return of.select(1, row).select(1, column);
  };
  for (std::int64_t i = 0, j = rotated / 2; i < rotated / 2; ++i, ++j)
    if (symmetric) {
      const at::Tensor mean = (entry(matrices, i, i) + entry(matrices, j, j)) / 2;
      entry(kept, i, i).copy_(mean);
      entry(kept, j, j).copy_(mean);
    } else {
      entry(kept, i, j).copy_(entry(matrices, i, j));
      entry(kept, j, i).copy_(entry(matrices, j, i));
    }
  return kept;
}

/// qk(layer), vo(layer): [kv_heads, d, d].
template <class Qk, class Vo>
HeadMatrices by_layer(const architecture::Config& c, bool symmetric, const Qk& qk, const Vo& vo) {
  std::vector<at::Tensor> of_qk, of_vo;
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.layers); ++i) {
    of_qk.push_back(left_by_rope(qk(i), c, symmetric));
    of_vo.push_back(vo(i));
  }
  return {at::stack(of_qk), at::stack(of_vo)};
}

at::Tensor gram(const at::Tensor& a) { return at::bmm(a, a.transpose(1, 2)); }

} // namespace

HeadMatrices angular_momentum(const architecture::Config& config, architecture::Arena& parameters,
                              architecture::Arena& momentum) {
  const c10::InferenceMode guard;
  double squares = 0;
  for (const float p : momentum.span()) squares += static_cast<double>(p) * static_cast<double>(p);
  const double unit = squares > 0 ? 1 / std::sqrt(squares) : 0;
  const Model W = bind(config, parameters), P = bind(config, momentum);
  std::vector<Factors> w, p;
  for (std::size_t i = 0; i < W.layers.size(); ++i) {
    w.push_back(factors(W.layers[i], config));
    p.push_back(factors(P.layers[i], config));
  }
  const auto turn = [&](const at::Tensor& of_p, const at::Tensor& of_w) {
    const at::Tensor product = at::bmm(of_p, of_w.transpose(1, 2));
    return (product - product.transpose(1, 2)) * unit;
  };
  return by_layer(
      config, false, [&](std::size_t i) { return turn(p[i].q, w[i].q) + turn(p[i].k, w[i].k); },
      [&](std::size_t i) { return turn(p[i].v, w[i].v) + turn(p[i].o, w[i].o); });
}

HeadMatrices balance(const architecture::Config& config, architecture::Arena& parameters) {
  const c10::InferenceMode guard;
  const Model W = bind(config, parameters);
  std::vector<Factors> w;
  for (const Layer& layer : W.layers) w.push_back(factors(layer, config));
  return by_layer(
      config, true, [&](std::size_t i) { return gram(w[i].q) - gram(w[i].k); },
      [&](std::size_t i) { return gram(w[i].v) - gram(w[i].o); });
}

FactorNorms factor_norms(const architecture::Config& config, architecture::Arena& parameters) {
  const c10::InferenceMode guard;
  std::vector<at::Tensor> q, k, v, o;
  for (const Layer& layer : bind(config, parameters).layers) {
    const Factors f = factors(layer, config);
    q.push_back(norms(f.q));
    k.push_back(norms(f.k));
    v.push_back(norms(f.v));
    o.push_back(norms(f.o));
  }
  return {at::stack(q), at::stack(k), at::stack(v), at::stack(o)};
}

at::Tensor norms(const at::Tensor& matrices) { return matrices.square().sum(at::IntArrayRef{-2, -1}).sqrt(); }

} // namespace noether::models
