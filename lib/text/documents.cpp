// The reader of documents. It holds the text that it has not divided yet and gives out what is complete, or the
// beginning of a document that is longer than a batch. Bytes pass through unchanged; there is no recoding and no
// normalisation.
#include "text/documents.h"

#include "base/error.h"
#include "base/threads.h"
#include "store/byte_input.h"
#include "text/json_field.h"
#include "text/pre_tokenizer.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>

namespace noether::text {
namespace {

constexpr std::size_t kRead = 1U << 20; // bytes at a time, or a batch, if that is less

/// Refuses, by its first bytes, what is certainly no text.
void expect_text(std::string_view begin, const std::string& name) {
  if (begin.starts_with("\x89HDF\r\n\x1a\n")) throw Error("{}: expected text, found an HDF5 file", name);
  if (begin.starts_with("\x1f\x8b"))
    throw Error("{}: expected text, plain or in zstd, found gzip: zcat unpacks it", name);
}

} // namespace

struct DocumentReader::State {
  std::vector<std::string> paths;
  DocumentOptions options;
  PreTokenizer pre_tokenizer;

  std::optional<store::ByteInput> input;
  std::size_t opened = 0;                                       ///< paths so far
  std::uint64_t input_bytes = 0, input_documents = 0, line = 0; ///< of this input
  std::uint64_t bytes_read = 0, bytes_in_all = 0, documents = 0;
  bool done = false, separated = false;
  bool begun = false;        ///< a piece of the document at hand has been given out
  bool at_line_start = true; ///< what comes next in the document at hand begins a line
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash{XXH3_createState(), XXH3_freeState};
  std::string rest; ///< read and not divided; for jsonl, not parsed

  const std::string& path() const { return paths[opened - 1]; }
  bool read(std::string& text);
  void emit(Batch& batch, std::size_t begin, std::size_t end, bool ends);
  std::size_t emit_begin(Batch& batch, std::size_t begin, std::size_t limit);
  std::size_t divide(Batch& batch, std::size_t begin, bool at_end);
  std::size_t divide_lines(Batch& batch, std::size_t begin, bool at_end);
  void next_plain(Batch& batch);
  void next_json(Batch& batch);
};

/// Appends the next bytes of the input at hand to `text`; false at its end.
bool DocumentReader::State::read(std::string& text) {
  if (!input) {
    const std::string& path = paths[opened++];
    input.emplace(store::open_input(path), store::input_name(path));
    input_bytes = input_documents = line = 0;
    input->sniff();
    expect_text(input->peek(8), store::input_name(path));
  }
  const std::size_t size = text.size(), wanted = std::clamp<std::size_t>(options.batch_bytes, 1, kRead);
  text.resize(size + wanted);
  std::size_t got = input->read(text.data() + size, wanted);
  if (got < wanted && input->sniff()) got += input->read(text.data() + size + got, wanted - got); // behind zstd frames
  text.resize(size + got);
  XXH3_128bits_update(hash.get(), text.data() + size, got);
  input_bytes += got;
  bytes_read += got;
  if (got > 0) return true;
  input.reset();
  if (input_bytes == 0 && path() == "-") throw Error("stdin: empty; did the program before this one fail?");
  if (input_bytes == 0) throw Error("{}: empty", path());
  return false;
}

/// Gives out text[begin, end) of the document at hand in pieces.
void DocumentReader::State::emit(Batch& batch, std::size_t begin, std::size_t end, bool ends) {
  while (options.cut && end - begin > options.piece_bytes) {
    const std::size_t cut =
        safe_cut(pre_tokenizer, std::string_view(batch.text).substr(begin, end - begin), options.piece_bytes);
    if (cut == std::string_view::npos) break;
    batch.pieces.push_back({begin, cut, false});
    begin += cut;
  }
  batch.pieces.push_back({begin, end - begin, ends});
  begun = !ends;
  at_line_start = ends;
  if (ends) {
    ++documents;
    ++input_documents;
    separated = false;
  }
}

/// Gives out the beginning of a document that is too long to wait for its end, up to a safe cut before `limit`. Returns
/// where what is left begins.
std::size_t DocumentReader::State::emit_begin(Batch& batch, std::size_t begin, std::size_t limit) {
  if (!options.cut || limit <= begin || limit - begin < options.batch_bytes / 2) return begin;
  const std::size_t cut =
      safe_cut_before(pre_tokenizer, std::string_view(batch.text).substr(begin, limit - begin), limit - begin);
  if (cut == std::string_view::npos) return begin;
  emit(batch, begin, begin + cut, false);
  return begin + cut;
}

/// Divides text[begin, size) and returns where what is left begins. at_end: the input ends there (for Division::one,
/// the last).
std::size_t DocumentReader::State::divide(Batch& batch, std::size_t begin, bool at_end) {
  if (options.division == Division::separator || options.division == Division::line)
    return divide_lines(batch, begin, at_end);
  if (!at_end) return emit_begin(batch, begin, batch.text.size());
  emit(batch, begin, batch.text.size(), true);
  return batch.text.size();
}

std::size_t DocumentReader::State::divide_lines(Batch& batch, std::size_t begin, bool at_end) {
  const std::string& text = batch.text;
  const bool lines = options.division == Division::line;
  std::size_t start = begin; // of a line, or of the rest of one
  bool whole = at_line_start;
  const auto is_separator = [&](std::size_t end) {
    return !lines && whole && text.compare(start, end - start, options.separator) == 0;
  };
  const auto end_before_separator = [&] {
    const bool only_line_feeds = !begun && text.find_first_not_of('\n', begin) >= start;
    emit(batch, begin, start > begin && !only_line_feeds ? start - 1 : start, true);
    separated = true;
  };
  for (std::size_t feed; (feed = text.find('\n', start)) != std::string::npos; start = feed + 1, whole = true) {
    if (lines)
      emit(batch, begin, feed, true);
    else if (is_separator(feed))
      end_before_separator();
    else
      continue;
    begin = feed + 1;
  }
  if (at_end && start < text.size() && is_separator(text.size())) {
    end_before_separator();
    return text.size();
  }
  if (at_end) {
    if (begin < text.size() || begun) emit(batch, begin, text.size(), true);
    return text.size();
  }
  // The last line may yet turn out to be a separator: then the line feed before it is not the document's.
  const bool undecided = !lines && whole && text.size() - start <= options.separator.size();
  return emit_begin(batch, begin, undecided ? std::max(start, begin + 1) - 1 : text.size());
}

void DocumentReader::State::next_plain(Batch& batch) {
  batch.text.swap(rest);
  rest.clear();
  std::size_t begin = 0;
  // Twice as much each time that a document can be neither finished nor cut: the work stays linear.
  const std::size_t enough = std::max(options.batch_bytes, 2 * batch.text.size());
  while (!done && batch.text.size() < enough) {
    if (read(batch.text)) continue;
    done = opened == paths.size();
    if (options.division != Division::one || done) begin = divide(batch, begin, true);
  }
  if (!done) begin = divide(batch, begin, false);
  rest.assign(batch.text, begin);
}

void DocumentReader::State::next_json(Batch& batch) {
  while (!done && batch.text.size() < options.batch_bytes) {
    std::size_t looked = rest.size(); // no line feed before here
    const bool more = read(rest);
    std::size_t start = 0;
    for (;;) {
      const std::size_t feed = rest.find('\n', looked);
      if (feed == std::string::npos && (more || start == rest.size())) break;
      const std::size_t end = std::min(feed, rest.size());
      ++line;
      const auto json = std::string_view(rest).substr(start, end - start);
      if (json.find_first_not_of(" \t\r") != std::string_view::npos) {
        const std::size_t begin = batch.text.size();
        append_json_field(json, options.field, fmt::format("{}:{}", store::input_name(path()), line), batch.text);
        emit(batch, begin, batch.text.size(), true);
      }
      start = looked = std::min(end + 1, rest.size());
    }
    rest.erase(0, start);
    if (!more) done = opened == paths.size();
  }
}

DocumentReader::DocumentReader(std::vector<std::string> paths, DocumentOptions options, PreTokenizer pre_tokenizer)
    : state_(std::make_unique<State>()) {
  if (std::count(paths.begin(), paths.end(), "-") > 1) throw UsageError("stdin (-) can be read only once");
  if (options.separator.find('\n') != std::string::npos)
    throw UsageError("a separator is one line, without a line feed");
  bool known = true;
  for (const std::string& path : paths) {
    struct stat status {};
    if (path == "-") {
      known = ::fstat(STDIN_FILENO, &status) == 0 && known;
    } else {
      if (::stat(path.c_str(), &status) != 0)
        throw Error("{}: {}", path, errno == ENOENT ? "no such file" : system_reason(errno));
      if (S_ISDIR(status.st_mode)) throw Error("{}: is a folder", path);
      if (::access(path.c_str(), R_OK) != 0) throw Error("{}: {}", path, system_reason(errno));
    }
    known = known && S_ISREG(status.st_mode);
    state_->bytes_in_all += static_cast<std::uint64_t>(status.st_size);
  }
  if (!known) state_->bytes_in_all = 0;
  if (!state_->hash) throw std::bad_alloc();
  XXH3_128bits_reset(state_->hash.get());
  state_->paths = std::move(paths);
  state_->options = std::move(options);
  state_->pre_tokenizer = pre_tokenizer;
  state_->done = state_->paths.empty();
}
DocumentReader::~DocumentReader() = default;
DocumentReader::DocumentReader(DocumentReader&&) noexcept = default;

bool DocumentReader::next(Batch& batch) {
  do {
    batch.pieces.clear();
    batch.text.clear();
    if (state_->done) return false;
    if (state_->options.division == Division::jsonl)
      state_->next_json(batch);
    else
      state_->next_plain(batch);
  } while (batch.pieces.empty());
  return true;
}

bool DocumentReader::ended_with_separator() const { return state_->separated; }
std::uint64_t DocumentReader::documents() const { return state_->documents; }
std::uint64_t DocumentReader::bytes_read() const { return state_->bytes_read; }
std::string DocumentReader::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->hash.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}
std::uint64_t DocumentReader::bytes_in_all() const {
  return state_->bytes_in_all >= state_->bytes_read ? state_->bytes_in_all : 0; // less only when compressed
}

void DocumentWriter::append(std::string_view bytes) {
  only_line_feeds_ = only_line_feeds_ && bytes.find_first_not_of('\n') == std::string_view::npos;
  write_(bytes);
}

void DocumentWriter::end_document(bool separated) {
  if (division_ == Division::line) write_("\n");
  if (division_ == Division::separator && separated) write_((only_line_feeds_ ? "" : "\n") + separator_ + "\n");
  only_line_feeds_ = true;
}

void for_each_piece(const Batch& batch, int threads, const std::function<void(int, std::size_t)>& work) {
  threads = std::max(threads, 1);
  std::atomic<std::size_t> next{0};
  // A few pieces at a time, as documents may be as short as a line.
  const std::size_t step =
      std::clamp<std::size_t>(batch.pieces.size() / (8 * static_cast<std::size_t>(threads)), 1, 1024);
  parallel_for(threads, threads, [&](std::int64_t worker) {
    for (std::size_t from = next.fetch_add(step); from < batch.pieces.size(); from = next.fetch_add(step))
      for (std::size_t i = from; i < std::min(from + step, batch.pieces.size()); ++i) work(static_cast<int>(worker), i);
  });
}

} // namespace noether::text
