// Where text may be cut for several threads, or where a buffer may end, without changing any word.
#include "text/pre_tokenizer.h"

namespace noether::text {
namespace {

/// May text be cut before the byte at p, 0 < p < size? Yes for an ASCII blank there, after a unit that is not blank:
///
/// - A word that holds blank space either begins with it or is nothing else (gpt2: the optional ' ', \s+; llama3: the
/// optional
///   [^\r\n\p{L}\p{N}], the optional ' ', \s*[\r\n]+, \s+), with one exception: llama3 lets line ends follow
///   [^\s\p{L}\p{N}]+. So between something that is not blank and a blank a word ends, if for llama3 the blank is no
///   line end or what stands before is a letter or a number (the alternatives that end in those, contractions among
///   them, take no line end).
/// - The words before p do not look further than p: only \s+(?!\S) looks ahead, and no run of blanks touches p from the
///   left. Every other alternative stops at a blank as it stops at the end of the text.
/// - The words after p do not look back, as the patterns have no look-behind.
///
/// Both neighbours begin or end a unit of UTF-8: p holds an ASCII byte.
bool may_cut(PreTokenizer kind, std::string_view text, std::size_t p) {
  const auto at = static_cast<unsigned char>(text[p]);
  if (detail::kAsciiClass[at] != static_cast<std::uint8_t>(CharClass::space)) return false;
  const CharClass before = class_before(text.data(), text.data() + p);
  if (before == CharClass::space) return false;
  if (kind == PreTokenizer::gpt2 || (at != '\r' && at != '\n')) return true;
  return before == CharClass::letter || before == CharClass::number;
}

} // namespace

std::size_t safe_cut(PreTokenizer kind, std::string_view text, std::size_t from) {
  for (std::size_t p = from > 0 ? from : 1; p < text.size(); ++p)
    if (may_cut(kind, text, p)) return p;
  return std::string_view::npos;
}

std::size_t safe_cut_before(PreTokenizer kind, std::string_view text, std::size_t from) {
  if (text.empty()) return std::string_view::npos;
  for (std::size_t p = from < text.size() ? from : text.size() - 1; p > 0; --p)
    if (may_cut(kind, text, p)) return p;
  return std::string_view::npos;
}

} // namespace noether::text
