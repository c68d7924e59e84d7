// Reading and writing of token files. Tokens are stored as narrow as the vocabulary allows, and are widened where they
// are used.
#include "text/token_file.h"

#include "base/error.h"
#include "text/spill.h"

#include <algorithm>

namespace noether::text {

TokenFile::TokenFile(store::FileReader file) : file_(std::move(file)) {
  file_.expect(store::kTokensFile);
  tokenizer_ = read_tokenizer(file_);
  tokenizer_digest_ = digest(tokenizer_);
  if (!file_.has("/tokens") || !file_.has("/documents"))
    throw Error("{}: no dataset {} (found: {})", name(), file_.has("/tokens") ? "/documents" : "/tokens",
                fmt::join(file_.datasets(), ", "));
  const store::ArrayInfo info = file_.info("/tokens");
  if (info.shape.size() != 1 || (info.type != store::Type::u16 && info.type != store::Type::u32))
    throw Error("{}: /tokens: expected a list of uint16 or uint32", name());
  size_ = info.count;
  if (info.type == store::Type::u16)
    narrow_ = file_.view<std::uint16_t>("/tokens");
  else
    wide_ = file_.view<std::uint32_t>("/tokens");
  const std::int64_t bytes = file_.integer("/tokens", "text_bytes");
  if (bytes < 0) throw Error("{}: /tokens: text_bytes is {}", name(), bytes);
  text_bytes_ = static_cast<std::uint64_t>(bytes);
  final_end_of_text_ = file_.integer("/tokens", "final_end_of_text") != 0;
  documents_ = file_.view<std::uint64_t>("/documents");
  if (documents_.empty() || documents_.front() != 0 || documents_.back() != size_ ||
      !std::is_sorted(documents_.begin(), documents_.end()))
    throw Error("{}: /documents does not divide its {} tokens", name(), size_);
}

void TokenFile::read(std::uint64_t begin, std::uint64_t count, std::int64_t* out) const {
  if (begin > size_ || count > size_ - begin)
    throw Error("{}: tokens {} to {} are asked for, of {}", name(), begin, begin + count, size_);
  const auto widen = [&](const auto& tokens) {
    const auto part = tokens.subspan(begin, count);
    const std::uint32_t vocabulary = tokenizer_.vocab_size();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (part[i] >= vocabulary)
        throw Error("{}: token {} is {}, beyond the vocabulary of {}", name(), begin + i, part[i], vocabulary);
      out[i] = part[i];
    }
  };
  if (wide_.empty())
    widen(narrow_);
  else
    widen(wide_);
}

struct TokenSink::State {
  explicit State(const Tokenizer& its) : tokenizer(its), narrow(its.vocab_size() <= 65536) {
    for (std::uint32_t id = 0; id < its.vocab_size(); ++id) bytes_of.push_back(its.text_bytes(id));
  }
  void put_tokens(std::span<const std::uint32_t> ids) {
    if (narrow) {
      narrowed.assign(ids.begin(), ids.end());
      tokens.append(narrowed.data(), 2 * narrowed.size());
    } else {
      tokens.append(ids.data(), 4 * ids.size());
    }
    for (const std::uint32_t id : ids) text_bytes += bytes_of[id];
  }
  std::uint64_t count() const { return tokens.size() / (narrow ? 2 : 4); }
  void begin_document() {
    if (open) return;
    if (documents > 0 && tokenizer.end_of_text) put_tokens({&*tokenizer.end_of_text, 1});
    const std::uint64_t at = count();
    begins.append(&at, sizeof at);
    ++documents;
    open = true;
  }

  Tokenizer tokenizer;
  bool narrow, open = false, ended = false;
  std::vector<std::uint32_t> bytes_of; ///< by id
  std::vector<std::uint16_t> narrowed;
  Spill tokens, begins;
  std::uint64_t documents = 0, text_bytes = 0;
};

TokenSink::TokenSink(const Tokenizer& tokenizer) : state_(std::make_unique<State>(tokenizer)) {}
TokenSink::~TokenSink() = default;
TokenSink::TokenSink(TokenSink&&) noexcept = default;

void TokenSink::add_document(std::span<const std::uint32_t> ids) {
  append(ids);
  end_document();
}

void TokenSink::append(std::span<const std::uint32_t> ids) {
  state_->begin_document();
  state_->put_tokens(ids);
}

void TokenSink::end_document() {
  state_->begin_document();
  state_->open = false;
}

void TokenSink::end_text() {
  if (!state_->tokenizer.end_of_text) return;
  state_->put_tokens({&*state_->tokenizer.end_of_text, 1});
  state_->ended = true;
}

std::uint64_t TokenSink::tokens() const { return state_->count(); }
std::uint64_t TokenSink::documents() const { return state_->documents; }
std::uint64_t TokenSink::text_bytes() const { return state_->text_bytes; }

store::FileWriter TokenSink::finish() {
  const std::uint64_t size = state_->count();
  state_->begins.append(&size, sizeof size);
  store::FileWriter file(store::kTokensFile);
  put(file, state_->tokenizer);
  file.array("/tokens", state_->narrow ? store::Type::u16 : store::Type::u32, {size}, state_->tokens.data());
  file.attribute("/tokens", "text_bytes", static_cast<std::int64_t>(state_->text_bytes));
  file.attribute("/tokens", "final_end_of_text", std::int64_t{state_->ended});
  file.array("/documents", store::Type::u64, {state_->documents + 1}, state_->begins.data());
  return file;
}

} // namespace noether::text
