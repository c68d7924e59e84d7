// Tokenizers in the forms that they are published in.
#pragma once

#include "text/tokenizer.h"

namespace noether::formats {

/// Reads a tokenizer from a path, told apart by content:
///
/// - any of our files that carries one, plain or in zstd ("-": from stdin; a FIFO is taken to hold one too);
/// - GPT-2's ranks as .tiktoken, base64 and rank a line. Such a file says neither how text is cut nor which special
/// tokens there are,
///   so only GPT-2's own 50256 ranks are taken, and <|endoftext|> = 50256 is added;
/// - vocab.json with merges.txt beside it; either may be named, and encoder.json and vocab.bpe too, with any prefix.
/// Text is
///   cut as by GPT-2; tokens that are neither a byte nor made by a merge are special;
/// - tokenizer.json: a byte-level BPE cut as by GPT-2 or Llama 3. Added tokens are special. A post-processor, which may
/// put
///   tokens around a text, is not applied.
///
/// GPT-2 gives the same tokenizer, and digest, in all forms. Throws Error when it is none of them, and, with what was
/// found, for a tokenizer of another sort: SentencePiece, a normalizer, a foreign pre-tokenizer or model.
/// provenance, if given, receives the records of a file of ours, and of other forms none.
text::Tokenizer load_tokenizer(const std::string& path, std::vector<std::string>* provenance = nullptr);

} // namespace noether::formats
