#include "alignment/classes.h"

#include "base/error.h"
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>

namespace noether::alignment {
namespace {

using Words = std::set<std::string_view>;

/// English words of five closed classes. A word may be in several of them.
struct WordClass {
  const char* name;
  Words words;
};
const std::vector<WordClass>& function_words() {
  static const std::vector<WordClass> all{
      {"determiner",
       {"a",       "an",   "the",   "this",  "that",  "these",   "those", "my",   "your", "his",  "her",
        "its",     "our",  "their", "each",  "every", "some",    "any",   "no",   "all",  "both", "either",
        "neither", "such", "what",  "which", "whose", "another", "other", "many", "much", "few",  "several"}},
      {"conjunction", {"and",      "or",     "but",   "nor", "so",     "yet",   "for",   "because",
                       "although", "though", "while", "if",  "unless", "until", "since", "whereas",
                       "whether",  "that",   "than",  "as",  "when",   "where", "once"}},
      {"preposition", {"of",      "in",     "to",      "for",    "with",  "on",     "at",      "by",      "from",
                       "into",    "about",  "over",    "under",  "after", "before", "between", "through", "during",
                       "against", "among",  "without", "within", "upon",  "toward", "towards", "across",  "behind",
                       "beyond",  "near",   "off",     "out",    "up",    "down",   "above",   "below",   "along",
                       "around",  "beside", "except",  "like",   "per",   "since",  "until",   "via",     "unto"}},
      {"pronoun",
       {"i",        "you",       "he",       "she",     "it",         "we",         "they",    "me",     "him",
        "her",      "us",        "them",     "mine",    "yours",      "hers",       "ours",    "theirs", "myself",
        "yourself", "himself",   "herself",  "itself",  "ourselves",  "themselves", "who",     "whom",   "whose",
        "which",    "what",      "this",     "that",    "these",      "those",      "someone", "anyone", "everyone",
        "nobody",   "something", "anything", "nothing", "everything", "one",        "ye",      "thou",   "thee"}},
      {"auxiliary", {"am",   "is",    "are",    "was",  "were",  "be",    "been",  "being", "do",
                     "does", "did",   "have",   "has",  "had",   "can",   "could", "may",   "might",
                     "must", "shall", "should", "will", "would", "ought", "shalt", "hath",  "doth"}}};
  return all;
}

/// What the classes ask about a token.
struct Look {
  bool valid = true, blank = false; ///< UTF-8; one blank before the rest
  std::int64_t characters = 0;      ///< of the rest
  std::int64_t letters = 0, numbers = 0, spaces = 0, others = 0, uppers = 0;
  bool first_upper = false, line_feed = false, starts_word_character = false;
  std::string word; ///< the rest, in lower case where it is ASCII
};

Look look_at(std::string_view bytes) {
  Look look;
  const char *at = bytes.data(), *const end = at + bytes.size();
  if (bytes.size() > 1 && bytes.front() == ' ' && bytes[1] != ' ') {
    look.blank = true;
    ++at;
  }
  for (const char* const begin = at; at < end;) {
    const text::Decoded decoded = text::decode_utf8(at, end);
    if (decoded.code_point == text::kMalformed) {
      look.valid = false;
      return look;
    }
    const text::CharClass cls = text::class_of(decoded.code_point);
    const bool upper = utf8proc_category(static_cast<utf8proc_int32_t>(decoded.code_point)) == UTF8PROC_CATEGORY_LU;
    ++look.characters;
    (cls == text::CharClass::letter   ? look.letters
     : cls == text::CharClass::number ? look.numbers
     : cls == text::CharClass::space  ? look.spaces
                                      : look.others) += 1;
    if (at == begin) {
      look.first_upper = upper;
      look.starts_word_character = cls == text::CharClass::letter || cls == text::CharClass::number;
    }
    look.uppers += upper ? 1 : 0;
    look.line_feed = look.line_feed || decoded.code_point == '\n';
    for (int i = 0; i < decoded.length; ++i)
      look.word += at[i] >= 'A' && at[i] <= 'Z' ? static_cast<char>(at[i] - 'A' + 'a') : at[i];
    at += decoded.length;
  }
  return look;
}

} // namespace

std::vector<TokenClass> classes_of(const text::Tokenizer& tokenizer) {
  const std::size_t n = tokenizer.tokens.size();
  std::vector<TokenClass> classes;
  std::map<std::string_view, std::size_t> place;
  const auto put = [&](const char* name, std::size_t id, bool member) {
    const auto [found, fresh] = place.try_emplace(name, classes.size());
    if (fresh) classes.push_back({name, std::vector<bool>(n)});
    if (member) classes[found->second].members[id] = true;
  };
  for (std::size_t id = 0; id < n; ++id) {
    if (tokenizer.is_special(static_cast<std::uint32_t>(id))) continue;
    const Look t = look_at(tokenizer.tokens[id]);
    const bool ok = t.valid && t.characters > 0, word = ok && t.letters == t.characters;
    const bool punctuation = ok && t.others == t.characters, line_end = ok && t.line_feed && t.spaces == t.characters;
    put("digits", id, ok && t.numbers == t.characters);
    put("lowercase", id, word && t.uppers == 0);
    put("uppercase", id, word && t.letters > 1 && t.uppers == t.letters);
    put("capitalised", id, word && t.first_upper && t.uppers == 1);
    put("punctuation", id, punctuation);
    bool function = false;
    for (const WordClass& kind : function_words()) {
      const bool member = word && kind.words.contains(t.word);
      put(kind.name, id, member);
      function = function || member;
    }
    const bool sentence_start = function && t.first_upper;
    put("function_word", id, function);
    put("content_word", id, word && t.blank && t.letters >= 3 && !function);
    put("word_start", id, ok && t.blank);
    put("continuation", id, ok && !t.blank && t.starts_word_character);
    put("single_character", id, ok && t.characters == 1);
    put("short", id, ok && t.characters >= 2 && t.characters <= 3);
    put("medium", id, ok && t.characters >= 4 && t.characters <= 6);
    put("long", id, ok && t.characters >= 7);
    put("high_frequency", id, 3 * id < n);
    put("mid_frequency", id, 3 * id >= n && 3 * id < 2 * n);
    put("low_frequency", id, 3 * id >= 2 * n);
    put("byte_fragment", id, !t.valid);
    put("line_end", id, line_end);
    put("sentence_start", id, sentence_start);
    put("structural", id, punctuation || line_end || sentence_start);
  }
  return classes;
}

void add_classes(const std::string& path, const text::Tokenizer& tokenizer, std::vector<TokenClass>& classes) {
  std::ifstream file(path);
  if (!file) throw Error("{}: {}", path, system_reason(errno));
  std::map<std::string, std::size_t> ids;
  for (std::size_t id = 0; id < tokenizer.tokens.size(); ++id)
    ids.try_emplace(text::printable(tokenizer.tokens[id]), id);
  std::map<std::string, std::size_t> added;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos || tab == 0)
      throw Error("{}:{}: expected CLASS, a tab, and a token as `noether tokenize show` shows it", path, number);
    const std::string name = line.substr(0, tab);
    const auto id = ids.find(line.substr(tab + 1));
    if (id == ids.end())
      throw Error("{}:{}: no token is shown as {} (a blank is \u2423)", path, number, line.substr(tab + 1));
    if (!added.contains(name) &&
        std::any_of(classes.begin(), classes.end(), [&](const TokenClass& c) { return c.name == name; }))
      throw Error("{}:{}: there is a class {} already", path, number, name);
    const auto [found, fresh] = added.try_emplace(name, classes.size());
    if (fresh) classes.push_back({name, std::vector<bool>(tokenizer.tokens.size())});
    classes[found->second].members[id->second] = true;
  }
  if (added.empty()) throw Error("{}: no classes in it", path);
}

const TokenClass& class_named(const std::vector<TokenClass>& classes, std::string_view name) {
  for (const TokenClass& one : classes)
    if (one.name == name) return one;
  throw Error("there is no class {}", name);
}

} // namespace noether::alignment
