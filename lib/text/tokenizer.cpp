// A tokenizer at rest: its group in HDF5 files, its identity, and the checks that a damaged or hostile file has to
// pass.
#include "text/tokenizer.h"

#include "base/error.h"
#include "text/spelling_index.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <set>

namespace noether::text {
namespace {

constexpr std::array kPreTokenizers{std::pair{PreTokenizer::gpt2, std::string_view("gpt2")},
                                    std::pair{PreTokenizer::llama3, std::string_view("llama3")}};

/// XXH3-128 over values whose lengths are part of what is hashed.
class Digest {
public:
  Digest() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }
  void add(std::uint64_t value) {
    std::array<unsigned char, 8> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    XXH3_128bits_update(state_.get(), text.data(), text.size());
  }
  std::string hexadecimal() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

std::string id_fault(std::string_view what, std::uint64_t id, std::size_t size) {
  return fmt::format("{} {} is beyond the vocabulary of {}", what, id, size);
}

} // namespace

PreTokenizer pre_tokenizer_of(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [value, spelling] : kPreTokenizers) {
    if (spelling == name) return value;
    names.emplace_back(spelling);
  }
  throw UsageError("unknown pre-tokenizer {}: expected {}{}", name, fmt::join(names, " or "),
                   did_you_mean(name, names));
}

std::string_view name_of(PreTokenizer pre_tokenizer) {
  for (const auto& [value, spelling] : kPreTokenizers)
    if (value == pre_tokenizer) return spelling;
  return "";
}

bool Tokenizer::is_special(std::uint32_t id) const {
  const auto found =
      std::lower_bound(special.begin(), special.end(), id,
                       [](const SpecialToken& token, std::uint32_t wanted) { return token.id < wanted; });
  return found != special.end() && found->id == id;
}

std::uint32_t Tokenizer::text_bytes(std::uint32_t id) const {
  return is_special(id) ? 0 : static_cast<std::uint32_t>(tokens[id].size());
}

std::string digest(const Tokenizer& tokenizer) {
  Digest digest;
  digest.add(name_of(tokenizer.pre_tokenizer));
  digest.add(std::uint64_t{tokenizer.whole_words});
  digest.add(std::uint64_t{tokenizer.end_of_text.value_or(std::numeric_limits<std::uint32_t>::max())});
  digest.add(std::uint64_t{tokenizer.tokens.size()});
  for (const std::string& token : tokenizer.tokens) digest.add(token);
  digest.add(std::uint64_t{tokenizer.merges.size()});
  for (const auto& [left, right] : tokenizer.merges) digest.add(std::uint64_t{left} << 32 | right);
  digest.add(std::uint64_t{tokenizer.special.size()});
  for (const SpecialToken& token : tokenizer.special) digest.add(std::uint64_t{token.id});
  return digest.hexadecimal();
}

std::optional<std::string> fault(const Tokenizer& tokenizer) {
  const std::size_t size = tokenizer.tokens.size();
  if (size >= 1U << 31) return fmt::format("{} tokens are too many", size);

  std::set<std::string_view> spellings;
  for (std::size_t i = 0; i < tokenizer.special.size(); ++i) {
    const SpecialToken& token = tokenizer.special[i];
    if (token.id >= size) return id_fault("special token", token.id, size);
    if (i > 0 && token.id <= tokenizer.special[i - 1].id) return "special tokens are not in order of their ids";
    if (token.spelling.empty()) return fmt::format("special token {} has no spelling", token.id);
    if (token.spelling != tokenizer.tokens[token.id] || !spellings.insert(token.spelling).second)
      return fmt::format("the spelling of special token {} is not its own", token.id);
  }
  if (tokenizer.end_of_text && !tokenizer.is_special(*tokenizer.end_of_text))
    return fmt::format("the end-of-text token {} is not a special token", *tokenizer.end_of_text);

  SpellingIndex index(tokenizer.tokens);
  for (std::uint32_t id = 0; id < size; ++id) {
    if (tokenizer.is_special(id)) continue;
    if (tokenizer.tokens[id].empty()) return fmt::format("token {} has no bytes", id);
    if (!index.add(id)) return fmt::format("token {} has the same bytes as an earlier one", id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char spelling = static_cast<char>(byte);
    if (!index.find({&spelling, 1})) return fmt::format("no token is the byte {:#04x}", byte);
  }
  std::string joined;
  for (std::size_t i = 0; i < tokenizer.merges.size(); ++i) {
    const auto [left, right] = tokenizer.merges[i];
    if (left >= size || right >= size)
      return id_fault(fmt::format("merge {} joins token", i), std::max(left, right), size);
    if (tokenizer.is_special(left) || tokenizer.is_special(right))
      return fmt::format("merge {} joins a special token", i);
    joined.assign(tokenizer.tokens[left]).append(tokenizer.tokens[right]);
    if (!index.find(joined))
      return fmt::format("merge {} joins tokens {} and {} into one that is not in the vocabulary", i, left, right);
  }
  return std::nullopt;
}

void put(store::FileWriter& file, const Tokenizer& tokenizer) {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> offsets{0};
  for (const std::string& token : tokenizer.tokens) {
    bytes.insert(bytes.end(), token.begin(), token.end());
    offsets.push_back(bytes.size());
  }
  std::vector<std::uint32_t> merges, special;
  for (const auto& [left, right] : tokenizer.merges) merges.insert(merges.end(), {left, right});
  for (const SpecialToken& token : tokenizer.special) special.push_back(token.id);

  file.array("/tokenizer/bytes", bytes);
  file.array("/tokenizer/offsets", offsets);
  file.owned_array("/tokenizer/merges", store::Type::u32, {tokenizer.merges.size(), 2}, merges.data());
  file.array("/tokenizer/special", special);
  file.attribute("/tokenizer", "type", std::string_view("bpe"));
  file.attribute("/tokenizer", "pre_tokenizer", name_of(tokenizer.pre_tokenizer));
  file.attribute("/tokenizer", "whole_words", std::int64_t{tokenizer.whole_words});
  file.attribute("/tokenizer", "end_of_text",
                 tokenizer.end_of_text ? std::int64_t{*tokenizer.end_of_text} : std::int64_t{-1});
  file.attribute("/tokenizer", "digest", digest(tokenizer));
}

Tokenizer read_tokenizer(const store::FileReader& file) {
  const auto damaged = [&file](std::string_view what) { return Error("{}: /tokenizer: {}", file.name(), what); };
  if (!file.has("/tokenizer/bytes"))
    throw Error("{}: it carries no tokenizer (no dataset /tokenizer/bytes)", file.name());
  const std::string type = file.string("/tokenizer", "type");
  if (type != "bpe") throw damaged(fmt::format("expected type bpe, found {}", type));

  Tokenizer tokenizer;
  const std::string pre_tokenizer = file.string("/tokenizer", "pre_tokenizer");
  const auto known = std::find_if(kPreTokenizers.begin(), kPreTokenizers.end(),
                                  [&](const auto& entry) { return entry.second == pre_tokenizer; });
  if (known == kPreTokenizers.end())
    throw damaged(fmt::format("expected pre_tokenizer gpt2 or llama3, found {}", pre_tokenizer));
  tokenizer.pre_tokenizer = known->first;
  tokenizer.whole_words = file.integer("/tokenizer", "whole_words") != 0;

  const auto bytes = file.view<std::uint8_t>("/tokenizer/bytes");
  const auto offsets = file.view<std::uint64_t>("/tokenizer/offsets");
  const auto merges = file.view<std::uint32_t>("/tokenizer/merges");
  const auto special = file.view<std::uint32_t>("/tokenizer/special");
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != bytes.size() ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    throw damaged("its offsets do not divide its bytes");
  const store::Shape shape = file.info("/tokenizer/merges").shape;
  if (shape.size() != 2 || shape[1] != 2) throw damaged("expected merges of shape [n, 2]");

  tokenizer.tokens.reserve(offsets.size() - 1);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    tokenizer.tokens.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(offsets[i]),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(offsets[i + 1]));
  tokenizer.merges.reserve(merges.size() / 2);
  for (std::size_t i = 0; i < merges.size(); i += 2) tokenizer.merges.emplace_back(merges[i], merges[i + 1]);
  for (const std::uint32_t id : special)
    tokenizer.special.push_back({id < tokenizer.tokens.size() ? tokenizer.tokens[id] : "", id});
  const std::int64_t end_of_text = file.integer("/tokenizer", "end_of_text");
  if (end_of_text >= 0 && end_of_text < std::int64_t{1} << 31)
    tokenizer.end_of_text = static_cast<std::uint32_t>(end_of_text);
  else if (end_of_text != -1)
    throw damaged(fmt::format("end_of_text is {}", end_of_text));

  if (const auto what = fault(tokenizer)) throw damaged(*what);
  const std::string expected = digest(tokenizer), found = file.string("/tokenizer", "digest");
  if (expected != found) throw damaged(fmt::format("its digest is {}, expected {}", found, expected));
  return tokenizer;
}

} // namespace noether::text
