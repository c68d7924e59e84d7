// What kinds of token a vocabulary has: the classes that enrichment is counted over.
#pragma once

#include "text/tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace noether::alignment {

/// A class of tokens: members[id].
struct TokenClass {
  std::string name;
  std::vector<bool> members;
};

/// The classes of the method note's section 6, over all ids of the tokenizer; special tokens are in none.
///
/// | class | tokens |
/// |---|---|
/// | digits, punctuation | nothing else but a blank before |
/// | lowercase, uppercase, capitalised | letters and a blank before; uppercase: two letters or more; capitalised: the
/// first alone |
/// | determiner, conjunction, preposition, pronoun, auxiliary, function_word | English ones, however written; the last:
/// all five |
/// | content_word | a word of three letters or more that begins with a blank and is none of those |
/// | word_start, continuation | with a blank before; a letter or digit without one |
/// | single_character, short, medium, long | 1, 2 to 3, 4 to 6, 7 or more characters, blanks before not counted |
/// | high_frequency, mid_frequency, low_frequency | thirds of the vocabulary: a BPE's earlier ids are its more frequent
/// tokens |
/// | byte_fragment | not valid UTF-8 |
/// | line_end | blanks with a line feed |
/// | sentence_start | a function word with a capital |
/// | structural | punctuation, line_end and sentence_start |
std::vector<TokenClass> classes_of(const text::Tokenizer& tokenizer);

/// Adds a user's classes: lines "CLASS<tab>TOKEN", TOKEN as text::printable() shows it. Throws Error with the line's
/// number when there is no such token, or the line is something else.
void add_classes(const std::string& path, const text::Tokenizer& tokenizer, std::vector<TokenClass>& classes);

const TokenClass& class_named(const std::vector<TokenClass>& classes, std::string_view name);

} // namespace noether::alignment
