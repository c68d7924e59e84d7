#include "training/record.h"

#include "base/error.h"
#include "models/conserved.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>

namespace noether::training {
namespace {

constexpr std::array kNames{"momentum", "balance", "norms", "logits"};
constexpr const char *kBalanceQK = "balance_QK", *kBalanceVO = "balance_VO";

bool takes(unsigned what, Record quantity) { return (what & static_cast<unsigned>(quantity)) != 0; }

/// A row's cells after the step.
using Put = std::function<void(const char* quantity, Cell layer, Cell head, double value)>;

void put_matrices(const char* quantity, const at::Tensor& matrices, const Put& put) {
  const at::Tensor norms = models::norms(matrices).contiguous();
  for (std::int64_t layer = 0; layer < norms.size(0); ++layer)
    for (std::int64_t head = 0; head < norms.size(1); ++head)
      put(quantity, layer, head, norms.const_data_ptr<double>()[layer * norms.size(1) + head]);
}

/// matrices, less what they were at the run's beginning.
at::Tensor drift(const architecture::Checkpoint& checkpoint, const char* name, const at::Tensor& matrices) {
  const std::vector<double>& start = checkpoint.training.references.at(name);
  // from_blob asks for a pointer that is not const; nothing writes through it.
  return matrices - at::from_blob(const_cast<double*>(start.data()), matrices.sizes(), at::kDouble);
}

/// Norms of an arena's layers, and of all of it.
void put_norms(const char* quantity, const architecture::Checkpoint& checkpoint, const architecture::Arena& arena,
               const Put& put) {
  std::vector<double> squares(static_cast<std::size_t>(checkpoint.config.layers));
  double all = 0;
  for (const architecture::Parameter& parameter : checkpoint.layout) {
    double sum = 0;
    for (std::int64_t i = 0; i < parameter.count; ++i) {
      const double x = arena.data()[parameter.offset + i];
      sum += x * x;
    }
    all += sum;
    std::size_t layer = 0;
    if (std::sscanf(parameter.name.c_str(), "layers/%zu/", &layer) == 1) squares[layer] += sum;
  }
  for (std::size_t layer = 0; layer < squares.size(); ++layer)
    put(quantity, static_cast<std::int64_t>(layer), Cell(), std::sqrt(squares[layer]));
  put(quantity, Cell(), Cell(), std::sqrt(all));
}

void put_logits(const models::Model& model, const Batch& batch, const models::StepBiases& biases, const Put& put) {
  const std::int64_t rows = std::min(batch.rows, kLogitRows);
  const at::Tensor tokens =
      at::from_blob(const_cast<std::int64_t*>(batch.tokens.data()), {rows, batch.context}, at::kLong);
  const models::AttentionObserver observe = [&](std::int64_t layer, const models::AttentionInputs& inputs) {
    const std::int64_t T = inputs.compared_q.size(2);
    const at::Tensor ahead = at::arange(T).unsqueeze(0) > at::arange(T).unsqueeze(1);
    const at::Tensor logits = at::matmul(inputs.compared_q, inputs.compared_k.transpose(-1, -2))
                                  .masked_fill(ahead, -std::numeric_limits<float>::infinity());
    put("largest_logit", layer, Cell(),
        logits.max().item<double>() / std::sqrt(static_cast<double>(model.config.head_width)));
  };
  models::hidden(model, tokens, biases, nullptr, nullptr, &observe);
}

} // namespace

std::vector<std::string> record_names() { return {kNames.begin(), kNames.end()}; }

unsigned records_of(const std::string& list) {
  unsigned what = 0;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::find(kNames.begin(), kNames.end(), word);
    if (found == kNames.end())
      throw UsageError("--record: expected {}, with commas between them, found {}{}", fmt::join(kNames, ", "), word,
                       did_you_mean(word, record_names()));
    what |= 1U << (found - kNames.begin());
  }
  if (what == 0) throw UsageError("--record: expected {}, with commas between them", fmt::join(kNames, ", "));
  return what;
}

std::vector<Column> record_columns() { return {{"step"}, {"quantity"}, {"layer"}, {"head"}, {"value", 7}}; }

void keep_references(unsigned what, architecture::Checkpoint& checkpoint) {
  auto& references = checkpoint.training.references;
  if (!takes(what, Record::balance)) return;
  const architecture::Config& c = checkpoint.config;
  if (references.contains(kBalanceQK)) {
    const std::int64_t size = c.layers * c.kv_heads * c.head_width * c.head_width;
    for (const char* name : {kBalanceQK, kBalanceVO})
      if (!references.contains(name) || std::ssize(references[name]) != size)
        throw Error("{}: /references/{}: expected {} numbers", checkpoint.name, name, size);
    return;
  }
  const models::HeadMatrices B = models::balance(checkpoint.config, checkpoint.parameters);
  for (const auto& [name, matrices] : {std::pair{kBalanceQK, B.qk}, std::pair{kBalanceVO, B.vo}}) {
    const at::Tensor dense = matrices.contiguous();
    references[name].assign(dense.const_data_ptr<double>(), dense.const_data_ptr<double>() + dense.numel());
  }
}

void record(unsigned what, std::uint64_t step, architecture::Checkpoint& checkpoint, const models::Model& model,
            architecture::Arena& gradients, const Batch& batch, const models::StepBiases& biases,
            const std::function<void(const std::vector<Cell>&)>& out) {
  const c10::InferenceMode guard;
  const Put put = [&](const char* quantity, Cell layer, Cell head, double value) {
    out({static_cast<std::int64_t>(step), quantity, std::move(layer), std::move(head), value});
  };
  architecture::Arena& momentum = checkpoint.training.optimizer.at("momentum"); // every optimizer has one
  if (takes(what, Record::momentum)) {
    const models::HeadMatrices L = models::angular_momentum(checkpoint.config, checkpoint.parameters, momentum);
    put_matrices("L_QK", L.qk, put);
    put_matrices("L_VO", L.vo, put);
  }
  if (takes(what, Record::balance)) {
    const models::HeadMatrices B = models::balance(checkpoint.config, checkpoint.parameters);
    put_matrices(kBalanceQK, B.qk, put);
    put_matrices(kBalanceVO, B.vo, put);
    put_matrices("drift_QK", drift(checkpoint, kBalanceQK, B.qk), put);
    put_matrices("drift_VO", drift(checkpoint, kBalanceVO, B.vo), put);
  }
  if (takes(what, Record::norms)) {
    put_norms("parameter_norm", checkpoint, checkpoint.parameters, put);
    put_norms("gradient_norm", checkpoint, gradients, put);
    put_norms("momentum_norm", checkpoint, momentum, put);
  }
  if (takes(what, Record::logits)) put_logits(model, batch, biases, put);
}

} // namespace noether::training
