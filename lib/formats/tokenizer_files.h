// Tokenizers in the forms that they are published in.
#pragma once

#include "text/tokenizer.h"

namespace noether::formats {

/// Reads a tokenizer from a path: any of our files that carries one ("-": from stdin), GPT-2's ranks as .tiktoken
/// (base64 and rank a line), vocab.json with merges.txt beside it (either may be named; encoder.json and vocab.bpe
/// too), or tokenizer.json. Told apart by content. Throws Error when it is none of them, or a tokenizer of another sort
/// (SentencePiece, a foreign pre-tokenizer).
text::Tokenizer load_tokenizer(const std::string& path);

} // namespace noether::formats
