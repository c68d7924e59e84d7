#include "text/documents.h"

#include "store/scratch.h"
#include "text/reference.h"

#include <gtest/gtest.h>
#include <zstd.h>

namespace noether::text {
namespace {

using store::message;
using store::Scratch;
using store::spill;

struct Read {
  std::vector<std::string> documents;
  bool separated = false;
  bool operator==(const Read&) const = default;
};

Read read(std::vector<std::string> paths, const DocumentOptions& options, PreTokenizer kind = PreTokenizer::gpt2) {
  DocumentReader reader(std::move(paths), options, kind);
  Read result;
  Batch batch;
  bool open = false;
  while (reader.next(batch))
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
      if (!open) result.documents.emplace_back();
      result.documents.back() += batch[i];
      open = !batch.pieces[i].ends_document;
    }
  EXPECT_FALSE(open);
  EXPECT_EQ(reader.documents(), result.documents.size());
  result.separated = reader.ended_with_separator();
  return result;
}

Read read_text(const std::string& text, const DocumentOptions& options) {
  const Scratch scratch;
  spill(scratch / "text", text);
  return read({scratch / "text"}, options);
}

std::string written(const Read& read, Division division, const std::string& separator) {
  std::string text;
  DocumentWriter writer(division, separator, [&](std::string_view bytes) { text += bytes; });
  for (std::size_t i = 0; i < read.documents.size(); ++i) {
    writer.append(read.documents[i]);
    writer.end_document(i + 1 < read.documents.size() || read.separated);
  }
  return text;
}

DocumentOptions separated() {
  DocumentOptions options;
  options.separator = "--";
  return options;
}

TEST(Documents, BetweenSeparatorLines) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(read_text("one\n--\ntwo\n", separated()), (Read{Texts{"one", "two\n"}, false}));
  EXPECT_EQ(read_text("one\n--\ntwo\n--\n", separated()), (Read{Texts{"one", "two"}, true}));
  EXPECT_EQ(read_text("one\n--\ntwo\n--", separated()), (Read{Texts{"one", "two"}, true}));
  EXPECT_EQ(read_text("--\none", separated()), (Read{Texts{"", "one"}, false}));
  EXPECT_EQ(read_text("a--\n --\n-- \n---\n--b", separated()), (Read{Texts{"a--\n --\n-- \n---\n--b"}, false}));
  EXPECT_EQ(read_text("a\r\n--\r\nb", separated()), (Read{Texts{"a\r\n--\r\nb"}, false}));
  // A document of line feeds alone keeps them: otherwise it and an empty one would be the same.
  EXPECT_EQ(read_text("--\n--\n\n--\n\n\n--\nx", separated()), (Read{Texts{"", "", "\n", "\n\n", "x"}, false}));
}

// Whatever the batches: the same documents, and the text again. Separators stand at batch borders too, in so many
// texts.
TEST(Documents, AnyBatchSizeAndBackAgain) {
  constexpr std::array<std::string_view, 10> kPool{"\n", "\n", "--", "\n--\n",    "\n- -\n",
                                                   "-",  "a",  " b", "word word", "\xff"};
  const Scratch scratch;
  for (std::uint64_t number = 0; number < 600; ++number) {
    SCOPED_TRACE(testing::Message() << "seed 31, text " << number);
    const std::string text = draw(kPool, 31, number, 16) + (number % 2 == 0 ? "x" : "\n");
    spill(scratch / "text", text);
    for (const Division division : {Division::separator, Division::line, Division::file, Division::one}) {
      DocumentOptions options = separated();
      if (number % 3 == 0) options.separator = "- -"; // a blank, where text may be cut
      options.division = division;
      options.batch_bytes = 4096;
      const Read whole = read({scratch / "text"}, options);
      for (const std::size_t batch : {1, 7, 40}) {
        options.batch_bytes = batch;
        options.piece_bytes = 2;
        ASSERT_EQ(read({scratch / "text"}, options), whole) << batch;
      }
      const bool ends = text.ends_with('\n');
      const bool completed = division == Division::line || whole.separated;
      ASSERT_EQ(written(whole, division, options.separator), completed && !ends ? text + '\n' : text);
    }
  }
}

TEST(Documents, LinesFilesAndAllAsOne) {
  const Scratch scratch;
  spill(scratch / "a", "1\n\n2");
  spill(scratch / "b", "3\n");
  DocumentOptions options;
  const std::vector<std::string> both{scratch / "a", scratch / "b"};
  options.division = Division::line;
  EXPECT_EQ(read(both, options).documents, (std::vector<std::string>{"1", "", "2", "3"}));
  options.division = Division::file;
  EXPECT_EQ(read(both, options).documents, (std::vector<std::string>{"1\n\n2", "3\n"}));
  options.division = Division::one;
  EXPECT_EQ(read(both, options).documents, std::vector<std::string>{"1\n\n23\n"});
  options.division = Division::separator;
  EXPECT_EQ(read(both, options).documents, (std::vector<std::string>{"1\n\n2", "3\n"}));
}

TEST(Documents, LongOnesComeInPiecesOfBoundedSize) {
  std::string text;
  while (text.size() < 3'000'000) text += "some words, ";
  const Scratch scratch;
  spill(scratch / "text", text);
  DocumentOptions options;
  options.batch_bytes = 1U << 18;
  options.piece_bytes = 1U << 14;
  for (const bool cut : {true, false}) {
    options.cut = cut;
    DocumentReader reader({scratch / "text"}, options, PreTokenizer::llama3);
    Batch batch;
    std::size_t longest = 0, most = 0;
    while (reader.next(batch)) {
      most = std::max(most, batch.text.size());
      for (const Batch::Piece& piece : batch.pieces) longest = std::max(longest, piece.size);
    }
    if (cut) {
      EXPECT_LE(longest, (1U << 14) + 16);
      EXPECT_LE(most, 1U << 19); // a batch, on top of what was left
    } else {
      EXPECT_EQ(longest, text.size());
    }
  }
}

TEST(Documents, JsonLines) {
  const Scratch scratch;
  DocumentOptions options;
  options.division = Division::jsonl;
  spill(scratch / "x", "{\"id\":1,\"text\":\"a\\nb\\u00e9\"}\n\n  "
                       "\r\n{\"text\":\"\",\"sub\":{\"text\":\"no\"}}\n{\"sub\":[{\"text\":2}],\"text\":\"c\"}");
  EXPECT_EQ(read({scratch / "x"}, options).documents, (std::vector<std::string>{"a\nb\u00e9", "", "c"}));

  const auto refused = [&](const std::string& line) {
    spill(scratch / "y", "{\"text\":\"fine\"}\n" + line + "\n");
    const std::string what = message([&] { read({scratch / "y"}, options); });
    return what.substr(std::min(what.size(), scratch.folder().size() + 1));
  };
  EXPECT_EQ(refused(R"({"txt":"a","id":2})"), "y:2: no field text (found: txt, id) (did you mean txt?)");
  EXPECT_EQ(refused(R"({"text":3})"), "y:2: expected a string in field text, found a number");
  EXPECT_EQ(refused(R"({"text":["a"]})"), "y:2: expected a string in field text, found a list");
  EXPECT_EQ(refused(R"(["text"])"), "y:2: expected a JSON object");
  EXPECT_EQ(refused(R"("text")"), "y:2: expected a JSON object");
  EXPECT_EQ(refused(R"({"text":"a)"), "y:2: not valid JSON at byte 11 of the line");
  EXPECT_EQ(refused(R"({"text":"\ud800"})"), "y:2: not valid JSON at byte 16 of the line");
  options.field = "body";
  spill(scratch / "z", "{\"body\":\"B\"}\n");
  EXPECT_EQ(read({scratch / "z"}, options).documents, std::vector<std::string>{"B"});
}

TEST(Documents, CompressedText) {
  const Scratch scratch;
  const std::string text = "one\n--\ntwo\n";
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  spill(scratch / "no-name-ending", frame + frame);
  EXPECT_EQ(read({scratch / "no-name-ending"}, separated()).documents,
            (std::vector<std::string>{"one", "two\none", "two\n"}));
  EXPECT_EQ(store::through_pipe(frame, [] { return read({"-"}, separated()); }).documents,
            (std::vector<std::string>{"one", "two\n"}));
  spill(scratch / "cut", frame.substr(0, frame.size() - 3));
  EXPECT_NE(message([&] { read({scratch / "cut"}, separated()); }).find("cut short"), std::string::npos);
}

TEST(Documents, WhatIsNoTextIsRefused) {
  const Scratch scratch;
  const auto refused = [&](const std::vector<std::string>& paths) {
    return message([&] { read(paths, separated()); });
  };
  spill(scratch / "empty", "");
  spill(scratch / "h5", "\x89HDF\r\n\x1a\n rest");
  spill(scratch / "gz", "\x1f\x8b\x08 rest");
  spill(scratch / "text", "x");
  EXPECT_EQ(refused({scratch / "empty"}), scratch / "empty" + ": empty");
  EXPECT_EQ(refused({scratch / "h5"}), scratch / "h5" + ": expected text, found an HDF5 file");
  EXPECT_EQ(refused({scratch / "gz"}),
            scratch / "gz" + ": expected text, plain or in zstd, found gzip: zcat unpacks it");
  EXPECT_EQ(refused({scratch / "text", scratch / "none"}), scratch / "none" + ": no such file");
  EXPECT_EQ(refused({scratch.folder()}), scratch.folder() + ": is a folder");
  EXPECT_EQ(refused({"-", "-"}), "stdin (-) can be read only once");
  EXPECT_EQ(store::through_pipe("", [&] { return refused({"-"}); }),
            "stdin: empty; did the program before this one fail?");
}

} // namespace
} // namespace noether::text
