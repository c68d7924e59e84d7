#include "regression/linear_transformer.h"

#include "base/error.h"
#include "base/random.h"

#include <cmath>

namespace noether::regression {
namespace {

constexpr const char* kFamily = "linear-transformer";
constexpr const char* kHistory = "/history/";
constexpr std::int64_t kMostDimensions = 4096;

using Values = std::vector<double>;
std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// A row of W_V, a part of W_KQ.
struct Matrices {
  Values value, key_query;
};

/// The length of W_KQ's shape is 1: its diagonal has `dimension` elements of this size.
double diagonal(std::int64_t dimension) { return 1 / std::sqrt(static_cast<double>(dimension)); }

/// The matrices that two factors stand for.
Matrices expand(std::int64_t d, double value, double key_query) {
  Matrices whole{Values(at(d + 1)), Values(at((d + 1) * d))};
  whole.value.back() = value;
  for (std::int64_t i = 0; i < d; ++i) whole.key_query[at(i * d + i)] = key_query * diagonal(d);
  return whole;
}

/// What matrices, or a gradient by them, have along the factors' shapes.
double along_value(const Values& row) { return row.back(); }
double along_key_query(const Values& matrix, std::int64_t d) {
  double sum = 0;
  for (std::int64_t i = 0; i < d; ++i) sum += matrix[at(i * d + i)];
  return sum * diagonal(d);
}

Matrices matrices_of(const LinearTransformer& model) {
  return model.matrices ? Matrices{model.value, model.key_query}
                        : expand(model.dimension, model.value[0], model.key_query[0]);
}

/// out = G v, G [n, n] and symmetric.
void multiply(const double* gram, std::int64_t n, const Values& v, Values& out) {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += gram[i * n + j] * v[at(j)];
    out[at(i)] = sum;
  }
}

/// out = W x, W [d + 1, d].
void apply(const Values& matrix, std::int64_t d, const double* x, Values& out) {
  for (std::int64_t i = 0; i <= d; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < d; ++j) sum += matrix[at(i * d + j)] * x[j];
    out[at(i)] = sum;
  }
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

} // namespace

LinearTransformer start(const StartOptions& options) {
  LinearTransformer model{options.dimension, options.matrices, {options.value}, {options.key_query}};
  if (!options.matrices) return model;
  Matrices whole = expand(options.dimension, options.value, options.key_query);
  std::uint32_t layer = 0;
  for (Values* values : {&whole.value, &whole.key_query}) {
    const Random random(options.seed, Purpose::kInitialise, 0, layer++);
    for (std::size_t i = 0; i < values->size(); ++i)
      if (options.deviation > 0) (*values)[i] += options.deviation * random.normal(i);
  }
  model.value = std::move(whole.value);
  model.key_query = std::move(whole.key_query);
  return model;
}

Factors factors_of(const LinearTransformer& model) {
  if (!model.matrices) return {model.value[0], model.key_query[0], 0};
  const Factors found{along_value(model.value), along_key_query(model.key_query, model.dimension)};
  const Matrices along = expand(model.dimension, found.value, found.key_query);
  double squares = 0;
  for (const auto& [all, part] : {std::pair{&model.value, &along.value}, std::pair{&model.key_query, &along.key_query}})
    for (std::size_t i = 0; i < all->size(); ++i) squares += ((*all)[i] - (*part)[i]) * ((*all)[i] - (*part)[i]);
  return {found.value, found.key_query, std::sqrt(squares)};
}

Regression::Regression(const Prompts& prompts) : dimension_(prompts.dimension) {
  const std::int64_t d = dimension_, n = d + 1, tokens = prompts.pairs + 1;
  gram_.resize(at(prompts.count * n * n));
  Values token(at(n));
  for (std::int64_t p = 0; p < prompts.count; ++p) {
    double* gram = gram_.data() + p * n * n;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const double* x = prompts.x.data() + (p * tokens + i) * d;
      std::copy_n(x, d, token.begin());
      token.back() = i < prompts.pairs ? prompts.y[at(p * tokens + i)] : 0; // the query's is what is asked for
      for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t column = 0; column < n; ++column)
          gram[row * n + column] += token[at(row)] * token[at(column)];
    }
    for (std::int64_t i = 0; i < n * n; ++i) gram[i] /= static_cast<double>(prompts.pairs);
    queries_.insert(queries_.end(), token.begin(), token.begin() + d);
    targets_.push_back(prompts.y[at(p * tokens + prompts.pairs)]);
  }
}

double Regression::loss(const LinearTransformer& model, std::span<const std::int64_t> batch,
                        LinearTransformer& gradient) const {
  const std::int64_t d = dimension_, n = d + 1, all = batch.empty() ? count() : static_cast<std::int64_t>(batch.size());
  const Matrices whole = matrices_of(model);
  Matrices sum{Values(at(n)), Values(at(n * d))};
  Values keys(at(n)), read(at(n)), values(at(n));
  double loss = 0;
  for (std::int64_t i = 0; i < all; ++i) {
    const std::int64_t p = batch.empty() ? i : batch[at(i)];
    const double *gram = gram_.data() + p * n * n, *query = queries_.data() + p * d;
    apply(whole.key_query, d, query, keys); // W_KQ e_q
    multiply(gram, n, keys, read);          // E E^T of it: what attention adds up
    multiply(gram, n, whole.value, values); // E E^T W_V^T: what each of its components is worth
    const double residual = dot(whole.value, read) - targets_[at(p)];
    loss += residual * residual / 2;
    for (std::int64_t row = 0; row < n; ++row) {
      sum.value[at(row)] += residual * read[at(row)];
      for (std::int64_t column = 0; column < d; ++column)
        sum.key_query[at(row * d + column)] += residual * values[at(row)] * query[column];
    }
  }
  const double share = 1 / static_cast<double>(all);
  for (Values* part : {&sum.value, &sum.key_query})
    for (double& element : *part) element *= share;
  gradient.dimension = d;
  gradient.matrices = model.matrices;
  gradient.value = model.matrices ? std::move(sum.value) : Values{along_value(sum.value)};
  gradient.key_query = model.matrices ? std::move(sum.key_query) : Values{along_key_query(sum.key_query, d)};
  return loss * share;
}

double Regression::prediction(const LinearTransformer& model, std::int64_t prompt) const {
  const std::int64_t n = dimension_ + 1;
  const Matrices whole = matrices_of(model);
  Values keys(at(n)), read(at(n));
  apply(whole.key_query, dimension_, queries_.data() + prompt * dimension_, keys);
  multiply(gram_.data() + prompt * n * n, n, keys, read);
  return dot(whole.value, read);
}

Regression::Moments Regression::moments() const {
  const LinearTransformer unit{dimension_, false, {1}, {1}};
  const auto all = static_cast<double>(count());
  Moments found;
  Values s(at(count()));
  double targets = 0;
  for (std::int64_t p = 0; p < count(); ++p) {
    const double y = targets_[at(p)];
    s[at(p)] = prediction(unit, p);
    found.kappa += s[at(p)] * s[at(p)] / all;
    found.nu += s[at(p)] * y / all;
    targets += y * y / all;
  }
  for (std::int64_t p = 0; p < count(); ++p) {
    const double kappa = s[at(p)] * s[at(p)] - found.kappa, nu = s[at(p)] * targets_[at(p)] - found.nu;
    found.kappa_deviation += kappa * kappa / all;
    found.nu_deviation += nu * nu / all;
  }
  found.kappa_deviation = std::sqrt(found.kappa_deviation);
  found.nu_deviation = std::sqrt(found.nu_deviation);
  // Rounding must not leave anything of one prompt, which two factors can always meet.
  const double met = found.kappa == 0 ? 0 : count() == 1 ? targets : found.nu * found.nu / found.kappa;
  found.floor = std::max(0.0, targets - met) / 2;
  return found;
}

maps::Point coordinates(const LinearTransformer& model, const Regression::Moments& moments, double learning_rate) {
  const Factors factors = factors_of(model);
  const double scale = std::sqrt(learning_rate * moments.kappa);
  return {scale * factors.value, scale * factors.key_query};
}

bool is_linear_transformer(const store::FileReader& file) {
  if (file.kind() != store::kCheckpointFile.name || !file.has("/configuration")) return false;
  const auto configuration = nlohmann::json::parse(file.text("/configuration"), nullptr, false);
  return configuration.is_object() && configuration.value("family", nlohmann::json()) == kFamily;
}

void check_fit(const Prompts& prompts, const LinearCheckpoint& checkpoint) {
  if (prompts.dimension != checkpoint.model.dimension)
    throw Error("{}: its x have {} components, and the model of {} takes {}", prompts.name, prompts.dimension,
                checkpoint.name, checkpoint.model.dimension);
}

LinearCheckpoint read_linear_checkpoint(const store::FileReader& file) {
  file.expect(store::kCheckpointFile);
  LinearCheckpoint checkpoint;
  checkpoint.name = file.name();
  checkpoint.digest = file.digest();
  checkpoint.provenance = file.provenance();
  LinearTransformer& model = checkpoint.model;
  try {
    const auto configuration = nlohmann::json::parse(file.text("/configuration"));
    if (configuration.at("family") != kFamily) throw Error("{}: expected a linear transformer", file.name());
    model.dimension = configuration.at("dimension").get<std::int64_t>();
    model.matrices = configuration.at("matrices").get<bool>();
  } catch (const nlohmann::json::exception&) {
    throw Error("{}: configuration: expected a family, a dimension, and whether matrices are trained", file.name());
  }
  if (model.dimension < 1 || model.dimension > kMostDimensions)
    throw Error("{}: configuration: dimension: expected 1 to {}, found {}", file.name(), kMostDimensions,
                model.dimension);
  const auto n = static_cast<std::uint64_t>(model.dimension + 1);
  const auto read = [&](const std::string& path, const store::Shape& expected) {
    if (!file.has(path)) throw Error("{}: no dataset {}", file.name(), path);
    if (const store::Shape found = file.info(path).shape; found != expected)
      throw Error("{}: {}: expected shape [{}], found [{}]", file.name(), path, fmt::join(expected, ", "),
                  fmt::join(found, ", "));
    return file.read<double>(path);
  };
  model.value = model.matrices ? read("/parameters/W_V", {n}) : read("/parameters/value", {1});
  model.key_query = model.matrices ? read("/parameters/W_KQ", {n, n - 1}) : read("/parameters/key_query", {1});
  if (file.has("/training")) {
    checkpoint.training = nlohmann::ordered_json::parse(file.text("/training"), nullptr, false);
    if (!checkpoint.training.is_object()) throw Error("{}: /training: expected a JSON object", file.name());
  }
  if (file.has("/history/step"))
    for (const std::string& path : file.datasets("/history"))
      checkpoint.history[path.substr(std::string(kHistory).size())] = file.read<double>(path);
  return checkpoint;
}

store::FileWriter to_file(const LinearCheckpoint& checkpoint) {
  const LinearTransformer& model = checkpoint.model;
  store::FileWriter file(store::kCheckpointFile);
  const nlohmann::ordered_json configuration{
      {"family", kFamily}, {"dimension", model.dimension}, {"matrices", model.matrices}};
  file.text("/configuration", configuration.dump());
  const auto n = static_cast<std::uint64_t>(model.dimension + 1);
  const std::span<const double> value(model.value), key_query(model.key_query);
  if (model.matrices) {
    file.array("/parameters/W_V", {n}, value);
    file.array("/parameters/W_KQ", {n, n - 1}, key_query);
  } else {
    file.array("/parameters/value", {1}, value);
    file.array("/parameters/key_query", {1}, key_query);
  }
  if (!checkpoint.training.is_null()) file.text("/training", checkpoint.training.dump());
  for (const auto& [name, column] : checkpoint.history) file.array(kHistory + name, column);
  return file;
}

} // namespace noether::regression
