// The loop of `tokenize encode`: read a batch, encode its pieces in parallel, hand them over in order.
#include "text/encode_documents.h"

#include <algorithm>

namespace noether::text {

void encode_documents(DocumentReader& reader, const Encoder& encoder, bool special, int threads, Reporter* reporter,
                      const TakeIds& take) {
  std::vector<Encoder> encoders(static_cast<std::size_t>(std::max(threads, 1)), encoder);
  std::vector<std::vector<std::uint32_t>> ids; // by piece; kept, so that their memory is asked for once
  Batch batch;
  while (reader.next(batch)) {
    if (ids.size() < batch.pieces.size()) ids.resize(batch.pieces.size());
    for_each_piece(batch, threads, [&](int worker, std::size_t piece) {
      ids[piece].clear();
      encoders[static_cast<std::size_t>(worker)].encode(batch[piece], ids[piece], special);
    });
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) take(ids[i], batch.pieces[i].ends_document);
    if (reporter != nullptr)
      reporter->progress_bytes(static_cast<double>(reader.bytes_read()), static_cast<double>(reader.bytes_in_all()));
  }
}

} // namespace noether::text
