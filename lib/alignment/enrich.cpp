#include "alignment/enrich.h"

#include "alignment/statistics.h"
#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

namespace noether::alignment {
namespace {

/// The direction and `count` random ones of its length, for each head of a layer: [heads, 1 + count, head_width].
at::Tensor with_null(const at::Tensor& directions, std::int64_t layer, const EnrichOptions& options) {
  const std::int64_t heads = directions.size(0), d = directions.size(1);
  const at::Tensor random = at::empty({heads, options.null, d}, at::kFloat);
  for (std::int64_t i = 0; i < options.null; ++i)
    for (std::int64_t head = 0; head < heads; ++head)
      Random(options.seed, Purpose::kNull, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(layer))
          .fill_normal(random.data_ptr<float>() + (head * options.null + i) * d, static_cast<std::uint64_t>(head * d),
                       static_cast<std::uint64_t>(d), 0, 1);
  const at::Tensor lengths = directions.norm(2, -1, true).unsqueeze(1);
  return at::cat({directions.unsqueeze(1), random / random.norm(2, -1, true) * lengths}, 1);
}

/// Members of each class among the ids.
std::vector<std::int64_t> count_classes(const std::vector<TokenClass>& classes, std::span<const std::int64_t> ids) {
  std::vector<std::int64_t> counts;
  for (const TokenClass& one : classes)
    counts.push_back(std::count_if(ids.begin(), ids.end(),
                                   [&](std::int64_t id) { return one.members[static_cast<std::size_t>(id)]; }));
  return counts;
}

double smoothed_log2(std::int64_t found, std::int64_t drawn, std::int64_t members, std::int64_t all) {
  const auto share = [](std::int64_t part, std::int64_t of) {
    return (static_cast<double>(part) + 0.5) / (static_cast<double>(of) + 1);
  };
  return std::log2(share(found, drawn) / share(members, all));
}

/// Counts of one direction, [top, bottom][class].
using Ends = std::array<std::vector<std::int64_t>, 2>;

} // namespace

std::vector<std::int64_t> extreme_ids(std::span<const float> values, std::span<const std::int64_t> candidates,
                                      std::int64_t count, bool least) {
  std::vector<std::int64_t> ids(candidates.begin(), candidates.end());
  const auto end = ids.begin() + std::min<std::int64_t>(count, std::ssize(ids));
  const auto before = [&](std::int64_t a, std::int64_t b) {
    const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
    return x != y ? (least ? x < y : x > y) : a < b;
  };
  if (end != ids.end()) std::nth_element(ids.begin(), end, ids.end(), before);
  std::sort(ids.begin(), end, before);
  ids.erase(end, ids.end());
  return ids;
}

std::vector<std::int64_t> ordinary_ids(const text::Tokenizer& tokenizer) {
  std::vector<std::int64_t> ids;
  for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (!tokenizer.is_special(id)) ids.push_back(id);
  return ids;
}

double EnrichmentTable::score() const {
  double sum = 0;
  for (const SemanticScore& head : heads) sum += head.value();
  return sum / static_cast<double>(heads.size());
}

double EnrichmentTable::standard_error() const {
  const double n = static_cast<double>(heads.size()), mean = score();
  double squares = 0;
  for (const SemanticScore& head : heads) squares += (head.value() - mean) * (head.value() - mean);
  return std::sqrt(squares / (n * (n - 1)));
}

EnrichmentTable enrich(const models::Model& model, const text::Tokenizer& tokenizer,
                       const std::vector<TokenClass>& classes, const at::Tensor& directions,
                       const EnrichOptions& options, const std::string& name) {
  const c10::InferenceMode guard;
  const architecture::Config& c = model.config;
  const std::vector<std::int64_t> ids = ordinary_ids(tokenizer);
  const auto all = std::ssize(ids);
  if (2 * options.top > all)
    throw Error("{}: --top {} is more than half of the vocabulary of {}", name, options.top, all);
  const std::vector<std::int64_t> members = count_classes(classes, ids);
  const auto place = [&](std::string_view wanted) {
    return static_cast<std::size_t>(&class_named(classes, wanted) - classes.data());
  };
  const std::size_t structural = place("structural"), fragment = place("byte_fragment");
  const auto score = [&](const Ends& ends) {
    const auto log2 = [&](std::size_t end, std::size_t of) {
      return smoothed_log2(ends[end][of], options.top, members[of], all);
    };
    return SemanticScore{0, 0, log2(0, structural), log2(1, fragment)};
  };

  EnrichmentTable table;
  table.null_scores.resize(static_cast<std::size_t>(options.null));
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::int64_t m = 1 + options.null;
    const at::Tensor cosine =
        score_rows(model, layer, model.tokens, options.embedding, with_null(directions[layer], layer, options))
            .cosine.contiguous();
    std::vector<Ends> counts(static_cast<std::size_t>(c.heads * m));
    parallel_for(c.heads * m, at::get_num_threads(), [&](std::int64_t i) {
      const std::span<const float> values(cosine.const_data_ptr<float>() + i * c.vocab_size,
                                          static_cast<std::size_t>(c.vocab_size));
      for (const std::size_t end : {0U, 1U})
        counts[static_cast<std::size_t>(i)][end] =
            count_classes(classes, extreme_ids(values, ids, options.top, end == 1));
    });
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const std::span<const Ends> of_head(counts.data() + head * m, static_cast<std::size_t>(m));
      for (const std::size_t end : {0U, 1U})
        for (std::size_t k = 0; k < classes.size(); ++k) {
          if (members[k] == 0) continue;
          Enrichment row{.layer = layer, .head = head, .top = end == 0, .of = k, .members = members[k]};
          row.found = of_head[0][end][k];
          row.expected = static_cast<double>(options.top) * static_cast<double>(members[k]) / static_cast<double>(all);
          row.log2 = std::log2(static_cast<double>(row.found) / row.expected);
          row.p = two_sided(hypergeometric_tails(all, members[k], options.top, row.found));
          if (options.null > 0) {
            double sum = 0, as_many = 1;
            for (const Ends& random : of_head.subspan(1)) {
              sum += static_cast<double>(random[end][k]);
              as_many += random[end][k] >= row.found ? 1 : 0;
            }
            row.null_found = sum / static_cast<double>(options.null);
            row.null_p = as_many / static_cast<double>(m);
          }
          table.rows.push_back(row);
        }
      table.heads.push_back(score(of_head[0]));
      table.heads.back().layer = layer;
      table.heads.back().head = head;
      for (std::size_t i = 1; i < of_head.size(); ++i)
        table.null_scores[i - 1] += score(of_head[i]).value() / static_cast<double>(c.layers * c.heads);
    }
  }
  std::vector<double> p;
  for (const Enrichment& row : table.rows) p.push_back(row.p);
  const std::vector<double> q = false_discovery_rates(p);
  for (std::size_t i = 0; i < q.size(); ++i) table.rows[i].q = q[i];
  return table;
}

} // namespace noether::alignment
