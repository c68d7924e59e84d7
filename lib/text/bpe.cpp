// The encoder: words from the pre-tokenizer's scanner, ids of short words from a cache, and the merges for the rest.
// Merging looks for the merge that is earliest in the list, and of equal ones for the leftmost, over and over: by a
// plain scan in short words, with a heap in long ones, so that a megabyte without a blank takes n log n. Not done here:
// normalisation, and tokens outside the vocabulary (all 256 bytes are in it).
#include "text/bpe.h"

#include "base/error.h"
#include "text/pair_table.h"
#include "text/pre_tokenizer.h"
#include "text/spelling_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <queue>
#include <unordered_map>

namespace noether::text {
namespace {

constexpr std::uint32_t kNone = PairTable::kNone;

/// What encoding needs of a tokenizer; shared by all encoders of one.
struct Tables {
  explicit Tables(const Tokenizer& tokenizer);

  PreTokenizer pre_tokenizer;
  std::array<std::uint32_t, 256> byte{}; ///< ids of the single bytes
  PairTable ranks;                       ///< (left, right) -> place in the list of merges
  std::vector<std::uint32_t> merged;     ///< place -> id of the result
  bool whole_words;
  std::unordered_map<std::string, std::uint32_t> words; ///< all tokens by their bytes; filled for whole_words only
  std::vector<SpecialToken> special;                    ///< longest first
  std::array<bool, 256> begins_special{};               ///< by first byte
};

Tables::Tables(const Tokenizer& tokenizer)
    : pre_tokenizer(tokenizer.pre_tokenizer), ranks(tokenizer.merges.size()), whole_words(tokenizer.whole_words),
      special(tokenizer.special) {
  SpellingIndex index(tokenizer.tokens);
  for (std::uint32_t id = 0; id < tokenizer.tokens.size(); ++id)
    if (!tokenizer.is_special(id)) index.add(id);
  const auto id_of = [&index](std::string_view bytes) {
    const auto id = index.find(bytes);
    if (!id) throw Error("tokenizer: a byte or the result of a merge is not in the vocabulary");
    return *id;
  };
  for (std::size_t value = 0; value < 256; ++value) {
    const char spelling = static_cast<char>(value);
    byte[value] = id_of({&spelling, 1});
  }
  std::string joined;
  merged.reserve(tokenizer.merges.size());
  for (const auto& [left, right] : tokenizer.merges) {
    joined.assign(tokenizer.tokens[left]).append(tokenizer.tokens[right]);
    ranks.insert(left, right,
                 static_cast<std::uint32_t>(merged.size())); // of a pair given twice the first place counts
    merged.push_back(id_of(joined));
  }
  if (whole_words)
    for (std::uint32_t id = 0; id < tokenizer.tokens.size(); ++id)
      if (!tokenizer.is_special(id)) words.emplace(tokenizer.tokens[id], id);
  std::stable_sort(special.begin(), special.end(),
                   [](const auto& a, const auto& b) { return a.spelling.size() > b.spelling.size(); });
  for (const SpecialToken& token : special) begins_special[static_cast<unsigned char>(token.spelling[0])] = true;
}

/// Words of up to Bytes bytes that make up to Ids tokens. Two places a word may be kept in, side by side; a new word
/// takes the place of an old one, so memory is bounded and the tables stay in the processor's cache.
template <std::size_t Bytes, std::size_t Ids, std::size_t Places> class WordCache {
public:
  struct Key {
    std::array<std::uint64_t, (Bytes + 1) / 8> parts;
    bool operator==(const Key& other) const {
      std::uint64_t different = 0; // a defaulted comparison would call memcmp, a fifth of all time
      for (std::size_t i = 0; i < parts.size(); ++i) different |= parts[i] ^ other.parts[i];
      return different == 0;
    }
  };
  struct alignas(32) Entry {
    Key key{};
    std::array<std::uint32_t, Ids> ids{};
  };

  /// The bytes of a word, padded with zeros, and its length in the last byte. `end`: where it is safe to read up to.
  static Key key_of(const char* word, std::size_t size, const char* end) {
    Key key{};
    if (static_cast<std::size_t>(end - word) >= sizeof key) {
      std::memcpy(&key, word, sizeof key); // a fixed size is a few plain loads
      for (std::size_t i = 0; i < key.parts.size(); ++i) {
        const std::size_t kept = size <= 8 * i ? 0 : std::min<std::size_t>(size - 8 * i, 8);
        key.parts[i] &= kept == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * kept) - 1;
      }
    } else {
      std::memcpy(&key, word, size);
    }
    key.parts.back() |= std::uint64_t{size} << 56;
    return key;
  }
  static std::size_t place_of(const Key& key) {
    std::uint64_t hash = 0;
    for (const std::uint64_t part : key.parts) hash = (hash ^ part ^ (hash >> 32)) * 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(hash >> (65 - std::bit_width(Places))); // the best mixed bits are the upper ones
  }

  WordCache() : entries_(Places) {}
  const Entry* find(const Key& key, std::size_t place) const {
    if (entries_[place].key == key) return &entries_[place];
    if (entries_[place ^ 1].key == key) return &entries_[place ^ 1];
    return nullptr;
  }
  void keep(const Key& key, std::size_t place, const std::uint32_t* ids, std::size_t count) {
    entries_[place ^ 1] = entries_[place];
    Entry& entry = entries_[place];
    entry.key = key;
    entry.ids.fill(kNone);
    std::copy_n(ids, count, entry.ids.begin());
  }

private:
  std::vector<Entry> entries_;
};

} // namespace

struct Encoder::State {
  explicit State(std::shared_ptr<const Tables> shared) : tables(std::move(shared)) {}

  template <PreTokenizer Kind> void ordinary(std::string_view text, std::vector<std::uint32_t>& out);
  void ordinary(std::string_view text, std::vector<std::uint32_t>& out) {
    if (tables->pre_tokenizer == PreTokenizer::gpt2)
      ordinary<PreTokenizer::gpt2>(text, out);
    else
      ordinary<PreTokenizer::llama3>(text, out);
  }
  void word(const char* begin, const char* end, std::vector<std::uint32_t>& out);
  void merge_short(std::vector<std::uint32_t>& ids, std::size_t from);
  void merge_long(std::vector<std::uint32_t>& ids, std::size_t from);

  using Short = WordCache<15, 4, 1 << 16>; // 2 MB
  using Long = WordCache<31, 8, 1 << 13>;
  std::shared_ptr<const Tables> tables;
  Short short_words;
  Long long_words;
  std::vector<std::uint32_t> ranks; ///< scratch of merge_short
};

template <PreTokenizer Kind> void Encoder::State::ordinary(std::string_view text, std::vector<std::uint32_t>& out) {
  const char* const end = text.data() + text.size();
  const auto cached = [&](auto& cache, const char* begin, std::size_t size) {
    const auto key = cache.key_of(begin, size, end);
    const std::size_t place = cache.place_of(key);
    if (const auto* entry = cache.find(key, place)) [[likely]] {
      for (const std::uint32_t id : entry->ids) {
        if (id == kNone) break;
        out.push_back(id);
      }
      return;
    }
    const std::size_t from = out.size();
    word(begin, begin + size, out);
    const std::size_t count = out.size() - from;
    if (count <= std::tuple_size_v<decltype(std::declval<typename std::decay_t<decltype(cache)>::Entry>().ids)>)
      cache.keep(key, place, out.data() + from, count);
  };
  for_each_word<Kind>(text, [&](const char* begin, const char* next) {
    const auto size = static_cast<std::size_t>(next - begin);
    if (size <= 15)
      cached(short_words, begin, size);
    else if (size <= 31)
      cached(long_words, begin, size);
    else
      word(begin, next, out);
  });
}

void Encoder::State::word(const char* begin, const char* end, std::vector<std::uint32_t>& out) {
  const auto size = static_cast<std::size_t>(end - begin);
  if (size >= kNone) throw Error("a word of {} bytes is longer than words can be", size);
  if (tables->whole_words) {
    const auto found = tables->words.find(std::string(begin, size));
    if (found != tables->words.end()) {
      out.push_back(found->second);
      return;
    }
  }
  const std::size_t from = out.size();
  for (const char* at = begin; at < end; ++at) out.push_back(tables->byte[static_cast<unsigned char>(*at)]);
  if (size <= 64) // about where the heap begins to win
    merge_short(out, from);
  else
    merge_long(out, from);
}

void Encoder::State::merge_short(std::vector<std::uint32_t>& ids, std::size_t from) {
  std::uint32_t* const word = ids.data() + from;
  std::size_t size = ids.size() - from;
  ranks.assign(size, kNone); // ranks[i]: of the merge of word[i] and word[i + 1]
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = tables->ranks.find(word[i], word[i + 1]);
  while (size > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(size - 1));
    if (*best == kNone) break;
    const auto i = static_cast<std::size_t>(best - ranks.begin());
    word[i] = tables->merged[*best];
    std::copy(word + i + 2, word + size, word + i + 1);
    std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(i + 1), ranks.begin() + static_cast<std::ptrdiff_t>(size),
              best);
    --size;
    if (i > 0) ranks[i - 1] = tables->ranks.find(word[i - 1], word[i]);
    ranks[i] = i + 1 < size ? tables->ranks.find(word[i], word[i + 1]) : kNone;
  }
  ids.resize(from + size);
}

void Encoder::State::merge_long(std::vector<std::uint32_t>& ids, std::size_t from) {
  std::uint32_t* const word = ids.data() + from;
  const std::size_t size = ids.size() - from;
  // A list over places that keep their numbers: next[i] and before[i] skip what was merged away (word[i] == kNone).
  std::vector<std::uint32_t> next(size), before(size);
  for (std::size_t i = 0; i < size; ++i) {
    next[i] = static_cast<std::uint32_t>(i + 1);
    before[i] = static_cast<std::uint32_t>(i) - 1;
  }
  struct Candidate {
    std::uint64_t order; ///< rank, then place: the earliest merge, leftmost
    std::uint32_t left, right;
    bool operator<(const Candidate& other) const { return order > other.order; }
  };
  std::vector<Candidate> first;
  const auto candidate = [&](std::uint32_t i) -> std::optional<Candidate> {
    const std::uint32_t rank = tables->ranks.find(word[i], word[next[i]]);
    if (rank == kNone) return std::nullopt;
    return Candidate{std::uint64_t{rank} << 32 | i, word[i], word[next[i]]};
  };
  for (std::uint32_t i = 0; i + 1 < size; ++i)
    if (const auto found = candidate(i)) first.push_back(*found);
  std::priority_queue<Candidate> queue({}, std::move(first));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const auto i = static_cast<std::uint32_t>(top.order);
    const std::uint32_t j = next[i];
    if (word[i] != top.left || j >= size || word[j] != top.right) continue; // merged with another meanwhile
    word[i] = tables->merged[top.order >> 32];
    word[j] = kNone;
    next[i] = next[j];
    if (next[i] < size) {
      before[next[i]] = i;
      if (const auto found = candidate(i)) queue.push(*found);
    }
    if (i > 0)
      if (const auto found = candidate(before[i])) queue.push(*found);
  }
  ids.erase(std::remove(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end(), kNone), ids.end());
}

Encoder::Encoder(const Tokenizer& tokenizer)
    : state_(std::make_unique<State>(std::make_shared<const Tables>(tokenizer))) {}
Encoder::~Encoder() = default;
Encoder::Encoder(const Encoder& other) : state_(std::make_unique<State>(other.state_->tables)) {}
Encoder::Encoder(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::uint32_t>& out, bool special) {
  const Tables& tables = *state_->tables;
  if (!special || tables.special.empty()) {
    state_->ordinary(text, out);
    return;
  }
  std::size_t begun = 0;
  for (std::size_t at = 0; at < text.size();) {
    const SpecialToken* found = nullptr;
    if (tables.begins_special[static_cast<unsigned char>(text[at])])
      for (const SpecialToken& token : tables.special)
        if (text.substr(at).starts_with(token.spelling)) {
          found = &token;
          break;
        }
    if (found == nullptr) {
      ++at;
      continue;
    }
    state_->ordinary(text.substr(begun, at - begun), out);
    out.push_back(found->id);
    at = begun = at + found->spelling.size();
  }
  state_->ordinary(text.substr(begun), out);
}

std::vector<std::uint32_t> Encoder::encode(std::string_view text, bool special) {
  std::vector<std::uint32_t> ids;
  encode(text, ids, special);
  return ids;
}

std::vector<std::string_view> Encoder::words(std::string_view text) const {
  std::vector<std::string_view> words;
  for_each_word(state_->tables->pre_tokenizer, text, [&](const char* begin, const char* end) {
    words.emplace_back(begin, static_cast<std::size_t>(end - begin));
  });
  return words;
}

bool Encoder::blanks_in_special() const {
  return std::any_of(state_->tables->special.begin(), state_->tables->special.end(), [](const SpecialToken& token) {
    return token.spelling.find_first_of(" \t\n\v\f\r") != std::string::npos;
  });
}

std::string decode(const Tokenizer& tokenizer, const std::uint32_t* ids, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] >= tokenizer.vocab_size())
      throw Error("token {} is {}, beyond the vocabulary of {}", i, ids[i], tokenizer.vocab_size());
    text += tokenizer.tokens[ids[i]];
  }
  return text;
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string ready;
  const char* at = held_.data();
  const char* const end = at + held_.size();
  while (at < end) {
    const Decoded decoded = decode_utf8(at, end);
    if (decoded.code_point != kMalformed) {
      ready.append(at, decoded.length);
      at += decoded.length;
      continue;
    }
    const std::size_t begun = utf8_beginning(at, end);
    if (at + begun == end && begun > 0) break;
    ready += "\uFFFD";
    at += std::max<std::size_t>(begun, 1);
  }
  held_.erase(0, static_cast<std::size_t>(at - held_.data()));
  return ready;
}

std::string Utf8Stream::finish() {
  const bool unfinished = !held_.empty();
  held_.clear();
  return unfinished ? "\uFFFD" : "";
}

} // namespace noether::text
