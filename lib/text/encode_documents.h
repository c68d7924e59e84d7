// Many documents to ids, on several threads, in order.
#pragma once

#include "base/reporter.h"
#include "text/bpe.h"
#include "text/documents.h"

#include <cstdint>
#include <functional>
#include <span>

namespace noether::text {

/// Takes ids of the document at hand; the last call for a document says so.
using TakeIds = std::function<void(std::span<const std::uint32_t> ids, bool ends_document)>;

/// Encodes all documents of `reader` on `threads` threads. `take` is called in order, from the calling thread; what it
/// gets is the same for any number of threads, but for where a long document is divided between calls. With special:
/// spellings of special tokens become their ids; the reader must then have been made with options.cut =
/// !encoder.blanks_in_special(). reporter may be null; it shows progress in bytes.
void encode_documents(DocumentReader& reader, const Encoder& encoder, bool special, int threads, Reporter* reporter,
                      const TakeIds& take);

} // namespace noether::text
