// How the files of another program's model are asked for what they hold. For this room alone.
#pragma once

#include "formats/model_layouts.h"

#include <initializer_list>
#include <set>

namespace noether::formats {

/// Of a size in somebody else's configuration, as in ours.
constexpr std::int64_t kLargestSize = 1 << 24;

/// A configuration of others, which may say much that does not matter here. Null is absent. A field may have several
/// names, of which the first that is there counts. Errors are "WHERE: FIELD: expected ..., found ...".
struct Settings {
  using Names = std::initializer_list<const char*>;
  const nlohmann::json& object;
  std::string where;

  const nlohmann::json* find(Names names) const;
  [[noreturn]] void unfit(Names names, std::string_view expected, const nlohmann::json* found) const;
  std::int64_t count(Names names) const;
  std::optional<std::int64_t> count_if(Names names) const;
  double real(Names names, double otherwise) const;
  bool flag(Names names, bool otherwise) const;
  std::string word(Names names, const char* otherwise) const;
  /// For what would compute something that ours cannot: an Error unless it is absent or `value`.
  void must(const char* name, bool value) const;
  /// An object in it; empty when absent.
  Settings below(const char* name) const;
};

/// Takes the tensors of a model by their names, and puts them where ours lie.
class Source {
public:
  /// prefix: what stands before all names of the model, and of nothing else. The model must outlive this.
  Source(const ForeignModel& model, std::string prefix) : model_(model), prefix_(std::move(prefix)) {}

  const std::string& name() const { return model_.name; }
  bool has(const std::string& name) const { return model_.tensors.contains(prefix_ + name); }
  std::int64_t tensors() const { return static_cast<std::int64_t>(model_.tensors.size()); }

  /// A tensor of real numbers of this shape.
  const Tensor& take(const std::string& name, const std::vector<std::int64_t>& shape);
  /// The shape of one that has so many sizes, each of them sensible.
  std::vector<std::int64_t> shape(const std::string& name, std::size_t dimensions);
  std::vector<float> numbers(const std::string& name, const std::vector<std::int64_t>& shape);
  /// Whether there is one that is not all zeros.
  bool any(const std::string& name);

  /// Our parameter's numbers, in the order that the view gives.
  void place(const std::string& ours, Tensor tensor) { places_.emplace(ours, std::move(tensor)); }
  /// Rows of queries, keys and values as ours + "Q", "K" and "V".
  void place_qkv(const std::string& ours, const Tensor& all, const architecture::Config& config);
  /// A head of its own; or, where it is tied, one that is not there, or is the embedding's copy.
  void place_head(const std::string& name, const std::string& embedding, const architecture::Config& config);

  /// What may be there and is not a weight: `names` in each layer, "h." before its number.
  void ignore(const std::string& layers, std::int64_t count, std::initializer_list<const char*> names);
  void ignore(const std::string& name) { taken_.insert(prefix_ + name); }

  /// The checkpoint, when nothing is missing and nothing left over.
  architecture::Checkpoint finish(const architecture::Config& config) const;

private:
  const Tensor& look(const std::string& name);

  const ForeignModel& model_;
  std::string prefix_;
  std::set<std::string> taken_;          ///< names in the file
  std::map<std::string, Tensor> places_; ///< of our parameters
};

} // namespace noether::formats
