// Importers of published byte-level BPE vocabularies. What could not be encoded exactly is refused, not approximated.
// Forms of the files: OpenAI's gpt-2 and tiktoken, Hugging Face tokenizers' tokenizer.json; no code of theirs.
#include "formats/tokenizer_files.h"

#include "base/error.h"
#include "store/stream.h"
#include "text/pair_table.h"
#include "text/unicode.h"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <unordered_map>

namespace noether::formats {
namespace {

using nlohmann::json;
using text::Tokenizer;

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::size_t kGpt2Ranks = 50256;
constexpr std::size_t kLongest = 1U << 28; // bytes of a file that is no HDF5: far beyond any vocabulary

/// The patterns as tokenizer.json files write them, and whose they are.
struct Pattern {
  std::string_view text;
  text::PreTokenizer kind;
};
constexpr std::array kPatterns{
    Pattern{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", text::PreTokenizer::gpt2},
    Pattern{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", text::PreTokenizer::gpt2},
    Pattern{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        text::PreTokenizer::llama3}};

/// A vocabulary by the bytes of its tokens, which a file may give in any order, and what else it says.
struct Vocabulary {
  std::string name;                               ///< for messages
  std::vector<std::optional<std::string>> tokens; ///< by id
  std::unordered_map<std::string, std::uint32_t> ids;

  void add(std::string bytes, std::int64_t id) {
    if (id < 0 || id > 1 << 24) throw Error("{}: token id {} is out of range", name, id);
    const auto place = static_cast<std::size_t>(id);
    if (place >= tokens.size()) tokens.resize(place + 1);
    if (tokens[place] && *tokens[place] != bytes) throw Error("{}: two tokens have the id {}", name, id);
    tokens[place] = bytes;
    ids.emplace(std::move(bytes), static_cast<std::uint32_t>(id));
  }
  std::uint32_t id(const std::string& bytes, std::string_view what) const {
    const auto found = ids.find(bytes);
    if (found == ids.end()) throw Error("{}: {} is not in the vocabulary", name, what);
    return found->second;
  }
};

/// GPT-2 spells bytes as letters: those that can be seen as themselves, the others from U+0100 on.
const std::array<int, 324>& byte_of_letter() {
  static const std::array<int, 324> table = [] {
    std::array<int, 324> bytes{};
    bytes.fill(-1);
    std::size_t unseen = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      bytes[seen ? static_cast<std::size_t>(byte) : unseen++] = byte;
    }
    return bytes;
  }();
  return table;
}

std::string bytes_of(std::string_view letters, const std::string& name) {
  std::string bytes;
  const char* const end = letters.data() + letters.size();
  for (const char* at = letters.data(); at < end;) {
    const text::Decoded letter = text::decode_utf8(at, end);
    const int byte = letter.code_point < byte_of_letter().size() ? byte_of_letter()[letter.code_point] : -1;
    if (byte < 0) throw Error("{}: token {} is not spelled in the byte-level alphabet", name, letters);
    bytes += static_cast<char>(byte);
    at += letter.length;
  }
  return bytes;
}

/// Checks that the parts fit together, and names the token between documents.
Tokenizer finish(Vocabulary vocabulary, Tokenizer tokenizer) {
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.tokens[id]) throw Error("{}: no token has the id {}", vocabulary.name, id);
    tokenizer.tokens.push_back(std::move(*vocabulary.tokens[id]));
  }
  std::sort(tokenizer.special.begin(), tokenizer.special.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const std::string_view name : {kEndOfText, std::string_view("<|end_of_text|>"), std::string_view("</s>")})
    for (const text::SpecialToken& token : tokenizer.special)
      if (!tokenizer.end_of_text && token.spelling == name) tokenizer.end_of_text = token.id;
  if (const auto what = text::fault(tokenizer)) throw Error("{}: {}", vocabulary.name, *what);
  return tokenizer;
}

/// Bytes in base64, or nothing when it is none.
std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((held += 6) >= 8) bytes += static_cast<char>(bits >> (held -= 8));
  }
  return bytes;
}

/// The rank of a line of a .tiktoken file and the bytes before it; nothing when it is no such line.
std::optional<std::pair<std::string, std::int64_t>> rank_line(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0) return std::nullopt;
  std::int64_t rank = -1;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + blank + 1, end, rank);
  auto bytes = from_base64(line.substr(0, blank));
  if (parsed.ec != std::errc() || parsed.ptr != end || !bytes || bytes->empty()) return std::nullopt;
  return std::pair{std::move(*bytes), rank};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t feed = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, feed);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(feed + 1, text.size()));
  }
  return lines;
}

/// tiktoken joins any two neighbours that spell a token, in order of its rank. In a trained BPE that is the same as the
/// merge that made the token: tokens between two borders are decided by the bytes between them alone, so a token's
/// bytes always come together from the same two parts, those that the earlier ranks leave of its own bytes.
Tokenizer from_ranks(std::string_view text, const std::string& name) {
  Vocabulary vocabulary{name, {}, {}};
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    auto entry = rank_line(lines[i]);
    if (!entry) throw Error("{}:{}: expected base64 and a rank", name, i + 1);
    if (entry->first.size() > 1024) throw Error("{}:{}: a token of {} bytes", name, i + 1, entry->first.size());
    vocabulary.add(std::move(entry->first), entry->second);
  }
  if (vocabulary.tokens.size() != kGpt2Ranks)
    throw Error("{}: {} ranks; only GPT-2's {} say by their number how text is cut (a tokenizer.json says it itself)",
                name, vocabulary.tokens.size(), kGpt2Ranks);

  Tokenizer tokenizer;
  text::PairTable ranks(vocabulary.tokens.size());
  std::vector<std::uint32_t> parts;
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.tokens[id]) throw Error("{}: no token has the rank {}", name, id);
    const std::string& bytes = *vocabulary.tokens[id];
    if (bytes.size() == 1) continue;
    parts.clear();
    for (const char byte : bytes)
      parts.push_back(vocabulary.id(std::string(1, byte), fmt::format("a byte of rank {}", id)));
    while (parts.size() > 2) {
      std::size_t best = 0;
      std::uint32_t lowest = text::PairTable::kNone;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (const std::uint32_t rank = ranks.find(parts[i], parts[i + 1]); rank < lowest) lowest = rank, best = i;
      if (lowest == text::PairTable::kNone) break;
      parts[best] = lowest;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best + 1));
    }
    if (parts.size() != 2) throw Error("{}: rank {} is not joined from two earlier ones: no byte-level BPE", name, id);
    ranks.insert(parts[0], parts[1], id);
    tokenizer.merges.emplace_back(parts[0], parts[1]);
  }
  tokenizer.special.push_back({std::string(kEndOfText), static_cast<std::uint32_t>(kGpt2Ranks)});
  vocabulary.add(std::string(kEndOfText), static_cast<std::int64_t>(kGpt2Ranks));
  return finish(std::move(vocabulary), std::move(tokenizer));
}

void add_spelled(Vocabulary& vocabulary, const json& tokens) {
  if (!tokens.is_object()) throw Error("{}: expected an object of tokens and ids", vocabulary.name);
  for (const auto& [letters, id] : tokens.items()) {
    if (!id.is_number_integer()) throw Error("{}: the id of token {} is no integer", vocabulary.name, letters);
    vocabulary.add(bytes_of(letters, vocabulary.name), id.get<std::int64_t>());
  }
}

void add_merge(Tokenizer& tokenizer, const Vocabulary& vocabulary, std::string_view left, std::string_view right) {
  tokenizer.merges.emplace_back(vocabulary.id(bytes_of(left, vocabulary.name), fmt::format("{} of a merge", left)),
                                vocabulary.id(bytes_of(right, vocabulary.name), fmt::format("{} of a merge", right)));
}

Tokenizer from_vocab_and_merges(const json& tokens, const std::string& vocab_name, std::string_view merges,
                                const std::string& merges_name) {
  Vocabulary vocabulary{vocab_name, {}, {}};
  add_spelled(vocabulary, tokens);
  Tokenizer tokenizer;
  std::vector<bool> made(vocabulary.tokens.size());
  const std::vector<std::string_view> lines = lines_of(merges);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || (i == 0 && lines[i].starts_with("#version"))) continue;
    const std::size_t blank = lines[i].find(' ');
    if (blank == std::string_view::npos || lines[i].find(' ', blank + 1) != std::string_view::npos)
      throw Error("{}:{}: expected two tokens", merges_name, i + 1);
    add_merge(tokenizer, vocabulary, lines[i].substr(0, blank), lines[i].substr(blank + 1));
    const auto [left, right] = tokenizer.merges.back();
    made[vocabulary.id(*vocabulary.tokens[left] + *vocabulary.tokens[right],
                       fmt::format("what line {} of {} joins", i + 1, merges_name))] = true;
  }
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (const auto& bytes = vocabulary.tokens[id]; bytes && bytes->size() != 1 && !made[id])
      tokenizer.special.push_back({*bytes, id});
  return finish(std::move(vocabulary), std::move(tokenizer));
}

/// Absent, null, false and "" all mean that something is not used.
bool used(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null() && *found != json(false) && *found != json("");
}

std::string type_of(const json& object) {
  return object.is_object() && object.contains("type") ? object["type"].dump() : object.dump().substr(0, 80);
}

text::PreTokenizer pre_tokenizer_of_json(const json& entry, const std::string& name) {
  const auto byte_level = [](const json& part, bool use_regex) {
    return part.is_object() && part.value("type", "") == "ByteLevel" && !used(part, "add_prefix_space") &&
           part.value("use_regex", true) == use_regex;
  };
  if (byte_level(entry, true)) return text::PreTokenizer::gpt2;
  std::string pattern;
  if (entry.is_object() && entry.value("type", "") == "Sequence") {
    const json parts = entry.value("pretokenizers", json::array());
    if (parts.size() == 2 && parts[0].is_object() && parts[0].value("type", "") == "Split" &&
        byte_level(parts[1], false) && parts[0].value("behavior", "") == "Isolated" && !used(parts[0], "invert"))
      pattern = parts[0].value("pattern", json::object()).value("Regex", "");
  }
  for (const Pattern& known : kPatterns)
    if (known.text == pattern) return known.kind;
  if (!pattern.empty()) throw Error("{}: expected the pattern of gpt2 or llama3, found {}", name, pattern);
  throw Error("{}: expected a byte-level pre-tokenizer, gpt2's or llama3's, found {}", name, type_of(entry));
}

Tokenizer from_tokenizer_json(const json& file, const std::string& name) {
  const json& model = file["model"];
  if (!model.is_object() || model.value("type", "BPE") != "BPE")
    throw Error("{}: expected a byte-level BPE, found the model {}", name, type_of(model));
  if (used(file, "normalizer"))
    throw Error("{}: expected no normalizer, found {}: it changes text, and decoding could not give it back", name,
                type_of(file["normalizer"]));
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    if (used(model, key)) throw Error("{}: expected a byte-level BPE, found {} = {}", name, key, model[key].dump());

  Tokenizer tokenizer;
  tokenizer.pre_tokenizer = pre_tokenizer_of_json(file.value("pre_tokenizer", json()), name);
  tokenizer.whole_words = used(model, "ignore_merges");
  Vocabulary vocabulary{name, {}, {}};
  // Added tokens are spelled plainly, and some also stand in the vocabulary, where they are meant by their id.
  const json added = file.value("added_tokens", json::array());
  for (const json& token : added) {
    if (!used(token, "special") || used(token, "lstrip") || used(token, "rstrip") || used(token, "single_word"))
      throw Error("{}: added token {} is matched in ordinary text or takes blanks with it, which is not supported",
                  name, token.value("content", json()).dump());
    const auto id = token.at("id").get<std::int64_t>();
    vocabulary.add(token.at("content").get<std::string>(), id);
    tokenizer.special.push_back({token.at("content").get<std::string>(), static_cast<std::uint32_t>(id)});
  }
  add_spelled(vocabulary, model.value("vocab", json()));
  for (const json& merge : model.value("merges", json::array())) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(tokenizer, vocabulary, merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos) throw Error("{}: expected a merge of two tokens, found {}", name, merge.dump());
    add_merge(tokenizer, vocabulary, text.substr(0, blank), text.substr(blank + 1));
  }
  return finish(std::move(vocabulary), std::move(tokenizer));
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw Error("{}: {}", path, system_reason(errno));
  return text;
}

/// The file beside `path` that belongs to it, by the end of its name; throws when there is none.
std::string beside(const std::string& path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames{
      {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};
  std::vector<std::string> tried;
  for (const auto& pair : kNames)
    for (const auto& [ours, other] : {pair, std::pair{pair.second, pair.first}})
      if (path.ends_with(ours)) tried.push_back(path.substr(0, path.size() - ours.size()).append(other));
  struct stat status {};
  for (const std::string& name : tried)
    if (::stat(name.c_str(), &status) == 0) return name;
  throw Error("{}: one half of a tokenizer; the other one, {}, is not beside it", path,
              tried.empty() ? "vocab.json or merges.txt" : tried.front());
}

json parse(const std::string& text, const std::string& name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw Error("{}: not valid JSON at byte {}", name, error.byte);
  }
}

bool is_ours(std::string_view begin) {
  for (const std::size_t block : {0, 512, 1024, 2048})
    if (begin.size() > block && begin.substr(block).starts_with("\x89HDF\r\n\x1a\n")) return true;
  return begin.starts_with("\x28\xb5\x2f\xfd");
}

Tokenizer from_ours(const std::string& path, std::vector<std::string>* provenance) {
  store::InputStream stream(path);
  const store::FileReader file = *stream.next(); // a stream holds one file at least, or next() throws
  if (provenance != nullptr) *provenance = file.provenance();
  return text::read_tokenizer(file);
}

} // namespace

Tokenizer load_tokenizer(const std::string& path, std::vector<std::string>* provenance) try {
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return from_ours(path, provenance);
  std::string begin(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("{}: {}", path, system_reason(errno));
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (begin.empty()) throw Error("{}: empty", path);
  if (is_ours(begin)) return from_ours(path, provenance);
  if (begin.starts_with('\n') && begin.substr(0, 64).find("<unk>") != std::string::npos)
    throw Error("{}: expected a byte-level BPE, found a SentencePiece model", path);

  const bool is_json =
      begin.find_first_not_of(" \t\r\n") != std::string::npos && begin[begin.find_first_not_of(" \t\r\n")] == '{';
  const std::string_view first = std::string_view(begin).substr(0, begin.find('\n'));
  const bool is_ranks = rank_line(first.ends_with('\r') ? first.substr(0, first.size() - 1) : first).has_value();
  const bool is_merges = first.starts_with("#version") || std::count(first.begin(), first.end(), ' ') == 1;
  if ((!is_json && !is_ranks && !is_merges) || begin.find('\0') != std::string::npos)
    throw Error(
        "{}: no tokenizer that is known: neither HDF5, .tiktoken ranks, vocab.json with merges.txt, nor tokenizer.json",
        path);
  if (static_cast<std::uint64_t>(status.st_size) > kLongest)
    throw Error("{}: {} bytes are too many for a tokenizer", path, status.st_size);

  const std::string text = read_whole(path);
  if (is_ranks && !is_json) return from_ranks(text, path);
  if (!is_json) return from_vocab_and_merges(parse(read_whole(beside(path)), beside(path)), beside(path), text, path);
  const json parsed = parse(text, path);
  // A vocabulary may well have a token that is spelled model.
  if (parsed.contains("model") && !parsed["model"].is_number()) return from_tokenizer_json(parsed, path);
  return from_vocab_and_merges(parsed, path, read_whole(beside(path)), beside(path));
} catch (const nlohmann::json::exception&) {
  throw Error("{}: its JSON is not put together as a tokenizer.json is", path);
}

} // namespace noether::formats
