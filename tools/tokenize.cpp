// tokenize: a byte-level BPE trained from text, text to tokens and back, and what a vocabulary does to a text.
#include "common.h"

#include "base/random.h"
#include "formats/tokenizer_files.h"
#include "text/bpe_train.h"
#include "text/encode_documents.h"
#include "text/token_file.h"
#include "text/unicode.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

namespace {

using namespace noether;
using text::Division;

/// Where text comes from and what a document of it is: for train and encode.
struct TextInput {
  std::vector<std::string> paths;
  std::string documents = "separator";
  bool one_document = false;
  text::DocumentOptions options;
};

const std::map<std::string, Division>& divisions() {
  static const std::map<std::string, Division> all{{"separator", Division::separator},
                                                   {"line", Division::line},
                                                   {"file", Division::file},
                                                   {"jsonl", Division::jsonl}};
  return all;
}

void add_text_input(CLI::App& app, TextInput& input) {
  app.add_option("files", input.paths, "Text, plain or in zstd; - for stdin, the default")->type_name("FILE");
  add_choice(
      app, "--documents", input.documents, {"separator", "line", "file", "jsonl"},
      "What a document is: the text between separator lines, a line, a file, or a string in a line's JSON object");
  app.add_option("--separator", input.options.separator, "The line between two documents")
      ->type_name("LINE")
      ->capture_default_str();
  app.add_option("--field", input.options.field,
                 "The string of each JSON object that is the text; implies --documents jsonl")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--one-document", input.one_document, "All input is one document");
}

/// The options as the library takes them; throws UsageError for one that would have no effect.
text::DocumentOptions document_options(const TextInput& input, const CLI::App& app) {
  const auto given = [&app](const char* name) { return app.count(name) > 0; };
  text::DocumentOptions options = input.options;
  options.division = divisions().at(input.documents);
  if (input.one_document) {
    for (const char* name : {"--documents", "--separator", "--field"})
      if (given(name)) throw UsageError("{} has no effect with --one-document", name);
    options.division = Division::one;
  } else if (given("--field")) {
    if (given("--documents") && options.division != Division::jsonl)
      throw UsageError("--field has no effect with --documents {}", input.documents);
    options.division = Division::jsonl;
  }
  if (given("--separator") && options.division != Division::separator)
    throw UsageError("--separator has no effect with {}",
                     given("--field") ? "--field" : "--documents " + input.documents);
  return options;
}

std::vector<std::string> or_stdin(const std::vector<std::string>& paths) {
  return paths.empty() ? std::vector<std::string>{"-"} : paths;
}

// ---- train ----

struct TrainCommand {
  TextInput input;
  std::int64_t vocab_size = 4096;
  std::string pre_tokenizer = "gpt2";
  std::vector<std::string> special;
};

CLI::App* add_train(CLI::App& app, Common& common, TrainCommand& command) {
  CLI::App* train = app.add_subcommand("train", "A tokenizer from text");
  train->footer(
      "The same text gives the same tokenizer, from files or stdin and on any number of threads: equally frequent\n"
      "pairs are taken in the order of their bytes. Ids 0 to 255 are the bytes, special tokens are the last ids.\n"
      "Example: noether tokenize train --vocab-size 4096 corpus.txt > bpe.h5\n"
      "         noether tokenize train --field text pages.jsonl.zst -o bpe.h5");
  add_text_input(*train, command.input);
  add_count(*train, "--vocab-size", command.vocab_size, "Bytes, merges and special tokens together", 257, 1 << 24);
  add_choice(*train, "--pre-tokenizer", command.pre_tokenizer, {"gpt2", "llama3"},
             "Whose pattern cuts text into words before merging");
  train
      ->add_option("--special", command.special,
                   "A special token besides <|endoftext|>, which is always there; may be given again")
      ->type_name("TOKEN")
      ->expected(1)
      ->allow_extra_args(false) // or it would take the files that follow
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_output(*train, common, "Where the tokenizer goes");
  add_zstd(*train, common);
  add_threads(*train, common);
  return train;
}

void run_train(const TrainCommand& command, const CLI::App& app, const Common& common) {
  text::TrainOptions options;
  options.vocab_size = static_cast<std::uint32_t>(command.vocab_size);
  options.pre_tokenizer = text::pre_tokenizer_of(command.pre_tokenizer);
  options.special.insert(options.special.end(), command.special.begin(), command.special.end());
  text::check(options);
  text::DocumentReader reader(or_stdin(command.input.paths), document_options(command.input, app),
                              options.pre_tokenizer);
  store::OutputStream output(common.output, common.zstd_level);
  Reporter reporter(common.program, common.verbosity(), common.progress_mode());

  const text::WordCounts words = text::count_words(reader, options.pre_tokenizer, common.thread_count(), &reporter);
  const text::Tokenizer tokenizer = text::train_bpe(words, options, &reporter);
  if (tokenizer.vocab_size() < options.vocab_size)
    reporter.message(fmt::format("the vocabulary is {}, not {}: no pair of tokens is left that occurs twice",
                                 tokenizer.vocab_size(), options.vocab_size));
  reporter.detail(fmt::format("{} bytes, {} documents, {} words, {} of them different; {} merges", reader.bytes_read(),
                              reader.documents(), words.total(), words.size(), tokenizer.merges.size()));
  store::FileWriter file(store::kTokenizerFile);
  text::put(file, tokenizer);
  output.write(std::move(file),
               store::extend_provenance({}, provenance_record(common, false, {{"text", reader.digest()}})));
  output.close();
}

// ---- encode ----

struct EncodeCommand {
  TextInput input;
  std::string tokenizer, valid_output;
  double split = 1;
  bool special = false, ids = false;
};

CLI::App* add_encode(CLI::App& app, Common& common, EncodeCommand& command) {
  CLI::App* encode = app.add_subcommand("encode", "Text to tokens");
  encode->footer(
      "Documents keep their order, with end-of-text between them, and decode gives the text back byte for byte.\n"
      "Example: noether tokenize encode -t bpe.h5 corpus.txt > tokens.h5\n"
      "         noether tokenize encode -t bpe.h5 --split 0.95 corpus.txt -o train.h5 --valid-output valid.h5\n"
      "         echo 'Hello, world' | noether tokenize encode -t bpe.h5 --ids");
  add_text_input(*encode, command.input);
  encode->add_option("-t,--tokenizer", command.tokenizer, "A tokenizer, or a file that carries one; GPT-2's forms too")
      ->type_name("FILE")
      ->required();
  encode->add_flag("--special", command.special, "Spellings of special tokens in the text are special, not plain text");
  encode->add_flag("--ids", command.ids, "Print decimal ids, a document a line, instead of a tokens file");
  add_real(*encode, "--split", command.split, "Part of the documents that goes to -o; the others go to --valid-output",
           0, 1, true);
  encode->add_option("--valid-output", command.valid_output, "Where the documents go that are held out")
      ->type_name("FILE");
  add_output(*encode, common, "Where the tokens go");
  add_zstd(*encode, common);
  add_seed(*encode, common);
  add_threads(*encode, common);
  return encode;
}

/// Appends decimal ids, blanks between them; `first` is false when some stand in this line already.
void append_ids(std::string& line, std::span<const std::uint32_t> ids, bool first) {
  for (const std::uint32_t id : ids) {
    if (!first) line += ' ';
    fmt::format_to(std::back_inserter(line), "{}", id);
    first = false;
  }
}

void run_encode(const EncodeCommand& command, const CLI::App& app, const Common& common) {
  const bool split = app.count("--split") > 0;
  if (split != !command.valid_output.empty())
    throw UsageError("{} needs {}", split ? "--split" : "--valid-output", split ? "--valid-output" : "--split");
  if (split && command.split == 1) throw UsageError("--split: expected less than 1, found 1");
  if (split && command.valid_output == common.output) throw UsageError("--output and --valid-output are the same");
  if (!split && app.count("--seed") > 0) throw UsageError("--seed has no effect without --split");
  for (const char* name : {"--split", "--zstd"})
    if (command.ids && app.count(name) > 0) throw UsageError("{} has no effect with --ids", name);
  const std::vector<std::string> paths = or_stdin(command.input.paths);
  if (command.tokenizer == "-" && std::find(paths.begin(), paths.end(), "-") != paths.end())
    throw UsageError("the tokenizer and the text cannot both be stdin");

  text::DocumentOptions options = document_options(command.input, app);
  std::vector<std::string> records;
  const text::Tokenizer tokenizer = formats::load_tokenizer(command.tokenizer, &records);
  const text::Encoder encoder(tokenizer);
  options.cut = !command.special || !encoder.blanks_in_special();
  text::DocumentReader reader(paths, options, tokenizer.pre_tokenizer);
  Reporter reporter(common.program, common.verbosity(), common.progress_mode());

  if (command.ids) {
    TextOutput output(common.output);
    std::string lines;
    bool first = true;
    text::encode_documents(reader, encoder, command.special, common.thread_count(), &reporter,
                           [&](std::span<const std::uint32_t> ids, bool ends) {
                             append_ids(lines, ids, first);
                             first = ends || (first && ids.empty());
                             if (ends) lines += '\n';
                             if (lines.size() < 1U << 16 && !ends) return;
                             output.write(lines);
                             lines.clear();
                           });
    output.close();
    return;
  }

  store::OutputStream output(common.output, common.zstd_level);
  std::optional<store::OutputStream> valid_output;
  if (split) valid_output.emplace(command.valid_output, common.zstd_level);
  text::TokenSink train(tokenizer), valid(tokenizer);
  const Random draw(common.seed, Purpose::kSplit);
  std::uint64_t document = 0;
  text::encode_documents(reader, encoder, command.special, common.thread_count(), &reporter,
                         [&](std::span<const std::uint32_t> ids, bool ends) {
                           text::TokenSink& sink = !split || draw.uniform(document) < command.split ? train : valid;
                           sink.append(ids);
                           if (!ends) return;
                           sink.end_document();
                           ++document;
                         });
  if (split && (train.documents() == 0 || valid.documents() == 0))
    throw Error("all {} documents went to {}: give more documents, another --split or another --seed", document,
                train.documents() == 0 ? "--valid-output" : "--output");
  if (!split && reader.ended_with_separator()) train.end_text();

  const auto provenance = store::extend_provenance(
      {records}, provenance_record(common, split, {{"tokenizer", text::digest(tokenizer)}, {"text", reader.digest()}}));
  const auto said = [&](const std::string& path, const text::TokenSink& sink) {
    reporter.message(fmt::format("{}: {} documents, {} bytes, {} tokens ({:.2f} bytes a token)",
                                 path == "-" ? "stdout" : path, sink.documents(), sink.text_bytes(), sink.tokens(),
                                 static_cast<double>(sink.text_bytes()) /
                                     static_cast<double>(std::max<std::uint64_t>(sink.tokens(), 1))));
  };
  output.write(train.finish(), provenance);
  if (split) valid_output->write(valid.finish(), provenance);
  output.close();
  if (split) valid_output->close();
  said(common.output, train);
  if (split) said(command.valid_output, valid);
}

// ---- decode ----

struct DecodeCommand {
  std::string input = "-", tokenizer, documents = "separator", separator;
  bool ids = false;
};

CLI::App* add_decode(CLI::App& app, Common& common, DecodeCommand& command) {
  CLI::App* decode = app.add_subcommand("decode", "Tokens to text");
  decode->footer(
      "Gives back the bytes that were encoded. Between two documents stands the separator on a line of its own.\n"
      "Example: noether tokenize decode tokens.h5 > corpus.txt\n"
      "         echo '15496 11 995' | noether tokenize decode --ids -t gpt2.tiktoken");
  decode->add_option("input", command.input, "Tokens, or - for stdin")->capture_default_str();
  decode->add_flag("--ids", command.ids, "The input is decimal ids, a document a line");
  decode->add_option("-t,--tokenizer", command.tokenizer, "For --ids: a tokenizer, or a file that carries one")
      ->type_name("FILE");
  add_choice(*decode, "--documents", command.documents, {"separator", "line", "joined"},
             "What stands between documents: the separator on a line, a line feed after each, or nothing");
  decode->add_option("--separator", command.separator, "The line between two documents")
      ->type_name("LINE")
      ->default_str("the end-of-text token");
  add_output(*decode, common, "Where the text goes");
  return decode;
}

/// Text on its way out, a buffer at a time.
class DocumentOutput {
public:
  DocumentOutput(const DecodeCommand& command, const text::Tokenizer& tokenizer, TextOutput& output)
      : output_(output),
        writer_(command.documents == "separator" ? Division::separator
                : command.documents == "line"    ? Division::line
                                                 : Division::one,
                !command.separator.empty() || !tokenizer.end_of_text ? command.separator
                                                                     : tokenizer.tokens[*tokenizer.end_of_text],
                [this](std::string_view bytes) { write(bytes); }) {
    if (command.documents == "separator" && command.separator.empty() && !tokenizer.end_of_text)
      throw UsageError("this tokenizer has no end-of-text token: give a --separator");
  }
  text::DocumentWriter& documents() { return writer_; }
  void close() {
    output_.write(buffer_);
    output_.close();
  }

private:
  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() < 1U << 20) return;
    output_.write(buffer_);
    buffer_.clear();
  }
  TextOutput& output_;
  std::string buffer_;
  text::DocumentWriter writer_;
};

void decode_tokens(const text::TokenFile& tokens, DocumentOutput& output, Reporter& reporter) {
  const text::Tokenizer& tokenizer = tokens.tokenizer();
  const auto documents = tokens.documents();
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i + 1 < documents.size(); ++i) {
    const bool last = i + 2 == documents.size();
    const bool separated = !last || tokens.final_end_of_text();
    std::uint64_t at = documents[i], end = documents[i + 1];
    if (separated && tokenizer.end_of_text && end > at) {
      std::int64_t id = 0;
      tokens.read(end - 1, 1, &id);
      if (id == *tokenizer.end_of_text) --end;
    }
    while (at < end) {
      ids.resize(std::min<std::uint64_t>(end - at, 1U << 16));
      tokens.read(at, ids.size(), ids.data());
      for (const std::int64_t id : ids) output.documents().append(tokenizer.tokens[static_cast<std::size_t>(id)]);
      at += ids.size();
    }
    output.documents().end_document(separated);
    if (reporter.progress_due()) reporter.progress(fmt::format("{} of {} tokens", documents[i + 1], tokens.size()));
  }
}

void decode_ids(const std::string& path, const text::Tokenizer& tokenizer, DocumentOutput& output) {
  text::DocumentOptions options;
  options.division = Division::line;
  text::DocumentReader reader({path}, options, tokenizer.pre_tokenizer);
  const std::string name = path == "-" ? "stdin" : path;
  std::uint64_t line = 1;
  std::optional<std::uint64_t> ended; // a document whose end is known when another one follows
  text::Batch batch;
  while (reader.next(batch)) {
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
      if (ended) output.documents().end_document(true);
      ended.reset();
      const std::string_view numbers = batch[i];
      for (std::size_t at = 0; (at = numbers.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
        const std::size_t end = std::min(numbers.find_first_of(" \t\r", at), numbers.size());
        const std::string_view number = numbers.substr(at, end - at);
        std::uint32_t id = 0;
        const auto parsed = std::from_chars(number.data(), number.data() + number.size(), id);
        if (parsed.ptr != number.data() + number.size() || parsed.ec == std::errc::invalid_argument)
          throw Error("{}:{}: expected a token id, found {}", name, line, number);
        if (parsed.ec != std::errc() || id >= tokenizer.vocab_size())
          throw Error("{}:{}: token {} is beyond the vocabulary of {}", name, line, number, tokenizer.vocab_size());
        output.documents().append(tokenizer.tokens[id]);
        at = end;
      }
      if (batch.pieces[i].ends_document) ended = line++;
    }
  }
  if (ended) output.documents().end_document(false);
}

void run_decode(const DecodeCommand& command, const CLI::App& app, const Common& common) {
  if (command.ids != !command.tokenizer.empty())
    throw UsageError("{}", command.ids ? "--ids needs a tokenizer: -t FILE"
                                       : "-t has no effect without --ids: tokens carry their tokenizer");
  if (app.count("--separator") > 0 && command.documents != "separator")
    throw UsageError("--separator has no effect with --documents {}", command.documents);
  if (command.input == "-" && command.tokenizer == "-")
    throw UsageError("the tokenizer and the ids cannot both be stdin");
  Reporter reporter(common.program, common.verbosity(), common.progress_mode());
  TextOutput text_output(common.output);
  if (command.ids) {
    const text::Tokenizer tokenizer = formats::load_tokenizer(command.tokenizer);
    DocumentOutput output(command, tokenizer, text_output);
    decode_ids(command.input, tokenizer, output);
    output.close();
    return;
  }
  const text::TokenFile tokens(store::open_one(command.input, store::kTokensFile));
  DocumentOutput output(command, tokens.tokenizer(), text_output);
  decode_tokens(tokens, output, reporter);
  output.close();
}

// ---- show ----

struct ShowCommand {
  std::string tokenizer = "-", text;
  bool special = false;
};

CLI::App* add_show(CLI::App& app, Common& common, ShowCommand& command) {
  CLI::App* show = app.add_subcommand("show", "A vocabulary and its merges, or the way a text is cut, as a table");
  show->footer("Blanks are shown as \u2423, bytes that cannot be shown as \\xff; the column hex has them all.\n"
               "Example: noether tokenize show bpe.h5 | tail\n"
               "         noether tokenize show bpe.h5 --text 'It is what it is.'");
  show->add_option("tokenizer", command.tokenizer, "A tokenizer, or a file that carries one; - for stdin")
      ->capture_default_str();
  show->add_option("--text", command.text, "Show how this text is cut")->type_name("TEXT");
  show->add_flag("--special", command.special, "Spellings of special tokens in --text are special, not plain text");
  add_json(*show, common);
  add_output(*show, common, "Where the table goes");
  return show;
}

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void show_vocabulary(const text::Tokenizer& tokenizer, TableWriter table) {
  // What each token was merged from: a merge's result is found by its bytes.
  std::unordered_map<std::string, std::pair<std::uint32_t, std::uint32_t>> made;
  for (const auto& [left, right] : tokenizer.merges)
    made.emplace(tokenizer.tokens[left] + tokenizer.tokens[right], std::pair{left, right});
  for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string& bytes = tokenizer.tokens[id];
    const auto found = made.find(bytes);
    const bool special = tokenizer.is_special(id), merged = !special && found != made.end();
    const std::string kind = special ? "special" : merged ? "merge" : bytes.size() == 1 ? "byte" : "whole word";
    table.row({std::int64_t{id}, kind, text::printable(bytes), hexadecimal(bytes),
               merged ? Cell(std::int64_t{found->second.first}) : Cell(),
               merged ? Cell(std::int64_t{found->second.second}) : Cell()});
  }
}

void show_text(const text::Tokenizer& tokenizer, const ShowCommand& command, TableWriter table) {
  text::Encoder encoder(tokenizer);
  std::int64_t byte = 0;
  std::vector<std::size_t> borders{0}; // of words, by byte
  for (const std::string_view word : encoder.words(command.text)) borders.push_back(borders.back() + word.size());
  for (const std::uint32_t id : encoder.encode(command.text, command.special)) {
    const std::string& bytes = tokenizer.tokens[id];
    const bool begins = std::binary_search(borders.begin(), borders.end(), static_cast<std::size_t>(byte));
    table.row({byte, std::string(begins ? "word" : ""), std::int64_t{id}, text::printable(bytes), hexadecimal(bytes)});
    byte += static_cast<std::int64_t>(bytes.size());
  }
}

void run_show(const ShowCommand& command, const CLI::App& app, const Common& common) {
  const bool with_text = app.count("--text") > 0;
  if (command.special && !with_text) throw UsageError("--special has no effect without --text");
  const text::Tokenizer tokenizer = formats::load_tokenizer(command.tokenizer);
  TextOutput output(common.output);
  if (with_text)
    show_text(tokenizer, command, table_writer({{"byte"}, {"begins"}, {"id"}, {"token"}, {"hex"}}, common, output));
  else
    show_vocabulary(tokenizer,
                    table_writer({{"id"}, {"kind"}, {"token"}, {"hex"}, {"left"}, {"right"}}, common, output));
  output.close();
  Reporter(common.program, common.verbosity())
      .message(fmt::format("{} tokens, {} merges, {} special; cut as by {}; digest {}", tokenizer.vocab_size(),
                           tokenizer.merges.size(), tokenizer.special.size(), text::name_of(tokenizer.pre_tokenizer),
                           text::digest(tokenizer)));
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Text to tokens and back, with a vocabulary trained from text or a published one.", "tokenize"};
  Common common;
  add_common(app, common,
             "Example: noether tokenize train --vocab-size 4096 corpus.txt > bpe.h5\n"
             "         noether tokenize encode -t bpe.h5 corpus.txt > tokens.h5\n"
             "`noether tokenize encode --help` shows the options of encode.");
  TrainCommand train;
  EncodeCommand encode;
  DecodeCommand decode;
  ShowCommand show;
  const CLI::App* train_app = add_train(app, common, train);
  const CLI::App* encode_app = add_encode(app, common, encode);
  const CLI::App* decode_app = add_decode(app, common, decode);
  const CLI::App* show_app = add_show(app, common, show);
  const std::vector<Subcommand> subcommands{
      {train_app, [&] { run_train(train, *train_app, common); }},
      {encode_app, [&] { run_encode(encode, *encode_app, common); }},
      {decode_app, [&] { run_decode(decode, *decode_app, common); }},
      {show_app, [&] { run_show(show, *show_app, common); }},
  };
  return run_tool(app, argc, argv, common, [&] { run_subcommand(subcommands); });
}
