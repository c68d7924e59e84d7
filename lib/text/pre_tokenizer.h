// Pre-tokenizers: where text is cut into words before merging. Hand-written scanners for two patterns, exact on
// well-formed UTF-8; no regular-expression engine, no recursion, no backtracking: every character is looked at three
// times at most.
//
//   gpt2    '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//   ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Malformed bytes are units of class `other` (text/unicode.h). Under (?i:) the s of 's is also U+017F, the long s, as
// in the engines of tiktoken and Hugging Face: it folds to s.
#pragma once

#include "text/tokenizer.h"
#include "text/unicode.h"

#include <string_view>

namespace noether::text {

/// The end of the word that begins at `at`, where at < end and a word begins at `at`.
template <PreTokenizer> const char* word_end(const char* at, const char* end);

/// Calls take(begin, end) for each word of `text` in order; the words end to end are the text.
template <PreTokenizer Kind, class Take> void for_each_word(std::string_view text, Take&& take) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const next = word_end<Kind>(at, end);
    take(at, next);
    at = next;
  }
}
/// The same for a pre-tokenizer known at run time.
template <class Take> void for_each_word(PreTokenizer kind, std::string_view text, Take&& take) {
  if (kind == PreTokenizer::gpt2)
    for_each_word<PreTokenizer::gpt2>(text, take);
  else
    for_each_word<PreTokenizer::llama3>(text, take);
}

/// The first position p >= from, 0 < p < text.size(), at which `text` may be cut so that the words of text[0, p)
/// followed by the words of text[p, end) are the words of the whole, whatever the two parts are; npos when there is
/// none. from > text.size() is none.
std::size_t safe_cut(PreTokenizer kind, std::string_view text, std::size_t from);
/// The last such position p <= from; npos when there is none.
std::size_t safe_cut_before(PreTokenizer kind, std::string_view text, std::size_t from);

// ---- the scanners ----

namespace detail {

/// Bytes of the contraction ('s 't 'm 'd 'll 've 're) that begins with the apostrophe at `at`; 0 when there is none.
template <bool AnyCase> int contraction(const char* at, const char* end) {
  const auto letter = [&](int i) {
    const char c = at + i < end ? at[i] : '\0';
    return AnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(1)) {
  case 's':
  case 't':
  case 'm':
  case 'd':
    return 2;
  case 'l':
    return letter(2) == 'l' ? 3 : 0;
  case 'v':
  case 'r':
    return letter(2) == 'e' ? 3 : 0;
  case '\xC5':
    return AnyCase && letter(2) == '\xBF' ? 3 : 0; // U+017F
  default:
    return 0;
  }
}

} // namespace detail

template <> inline const char* word_end<PreTokenizer::gpt2>(const char* at, const char* end) {
  if (*at == '\'')
    if (const int length = detail::contraction<false>(at, end)) return at + length;
  const Char first = char_at(at, end);
  const char* next = at + first.length;
  if (first.cls != CharClass::space) return run_end(next, end, first.cls);
  if (*at == ' ' && next < end) { // a blank belongs to the word that it stands before
    const Char second = char_at(next, end);
    if (second.cls != CharClass::space) return run_end(next + second.length, end, second.cls);
  }
  // Blank space, but for its last character when something follows: that may belong to the next word.
  const char* last = at;
  while (next < end) {
    const Char unit = char_at(next, end);
    if (unit.cls != CharClass::space) return last > at ? last : next;
    last = next;
    next += unit.length;
  }
  return end;
}

template <> inline const char* word_end<PreTokenizer::llama3>(const char* at, const char* end) {
  if (*at == '\'')
    if (const int length = detail::contraction<true>(at, end)) return at + length;
  const Char first = char_at(at, end);
  const char* next = at + first.length;
  if (first.cls == CharClass::letter) return run_end(next, end, CharClass::letter);
  if (first.cls == CharClass::number) { // three digits at most
    for (int digits = 1; digits < 3 && next < end; ++digits) {
      const Char unit = char_at(next, end);
      if (unit.cls != CharClass::number) break;
      next += unit.length;
    }
    return next;
  }
  const auto line_end = [](char c) { return c == '\r' || c == '\n'; };
  Char second{0, CharClass::space};
  if (next < end) second = char_at(next, end);
  if (second.cls == CharClass::letter && !line_end(*at)) return run_end(next + second.length, end, CharClass::letter);
  if (first.cls == CharClass::other || (*at == ' ' && second.cls == CharClass::other)) {
    next = run_end(next, end, CharClass::other);
    while (next < end && line_end(*next)) ++next;
    return next;
  }
  // Blank space: up to its last line end if it has one, otherwise as GPT-2 has it.
  const char* last = at;
  const char* after_line = line_end(*at) ? next : nullptr;
  while (next < end) {
    const Char unit = char_at(next, end);
    if (unit.cls != CharClass::space) break;
    last = next;
    next += unit.length;
    if (line_end(*last)) after_line = next;
  }
  if (after_line != nullptr) return after_line;
  return next == end || last == at ? next : last;
}

} // namespace noether::text
