// What attention's continuous symmetries conserve. The scores of a head are the same for W_Q -> R W_Q, W_K -> R W_K,
// its outputs for W_V -> R W_V, W_O -> W_O R^T, with R a rotation of its components; so under exact symmetric dynamics
// an angular momentum is constant (Noether), and under gradient flow a balance of the weights is. Source: arXiv
// 2601.22257, section 2 (the method note's section 2).
#pragma once

#include "architecture/checkpoint.h"

#include <ATen/core/Tensor.h>

namespace noether::models {

/// For each layer and key head a matrix, [layers, kv_heads, head_width, head_width] float64. Query heads that share a
/// key head are turned together: theirs are sums over them.
struct HeadMatrices {
  at::Tensor qk, vo;
};

/// Antisymmetric, with momentum P of the weights W, bias columns included:
///   L_QK = P_Q W_Q^T - W_Q P_Q^T + P_K W_K^T - W_K P_K^T,   L_VO = P_V W_V^T - W_V P_V^T + P_O^T W_O - W_O^T P_O.
/// P is `momentum`, an arena as long as the parameters, divided by its length over all of them (of an optimizer's
/// momentum the direction is what can be compared). With RoPE only rotations that commute with it leave
/// scores alone, and the entries of L_QK for others are zero. Rows are a head's components.
HeadMatrices angular_momentum(const architecture::Config& config, architecture::Arena& parameters,
                              architecture::Arena& momentum);

/// W_Q W_Q^T - W_K W_K^T and W_V W_V^T - W_O^T W_O, symmetric, bias columns included: what gradient flow conserves,
/// since scores are the same for W_Q -> A W_Q, W_K -> A^-T W_K with any invertible A. Of the former, too, only what
/// RoPE leaves.
HeadMatrices balance(const architecture::Config& config, architecture::Arena& parameters);

/// The Frobenius norm of each matrix: [layers, kv_heads] float64.
at::Tensor norms(const at::Tensor& matrices);

/// Frobenius norms of the two pairs of factors that heads are made of, bias columns included: [layers, kv_heads]
/// float64, q and o over all query heads that share a key head.
struct FactorNorms {
  at::Tensor q, k, v, o;
};
FactorNorms factor_norms(const architecture::Config& config, architecture::Arena& parameters);

} // namespace noether::models
