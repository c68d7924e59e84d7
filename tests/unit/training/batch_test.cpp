#include "training/batch.h"

#include "base/error.h"
#include "small.h"

namespace noether::training {
namespace {

TEST(Batch, HoldsWindowsAndTheTokensThatFollow) {
  const Folder folder;
  std::vector<text::TokenFile> files;
  files.push_back(token_file(folder / "a.h5", 100));
  const Data data(files, settings_of(settings_json({{"context", 10}, {"order", "shuffle"}}), ""));
  const Batch batch = data.batch(0, 10); // 99 targets in 10 windows: the last begins at 89 and repeats one
  EXPECT_EQ(batch.counted, 99);
  int skipped = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    if (batch.targets[i] == -1) {
      EXPECT_EQ(batch.tokens[i], 89);
      ++skipped;
    } else {
      EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
    }
  }
  EXPECT_EQ(skipped, 1);
  // The same windows, however they are asked for.
  const Batch later = data.batch(4, 3);
  EXPECT_TRUE(std::equal(later.tokens.begin(), later.tokens.end(), batch.tokens.begin() + 40));
}

TEST(Batch, TakesAFileOfExactlyOneWindowAndNoneThatIsShorter) {
  const Folder folder;
  for (const char* order : {"random", "shuffle"}) {
    const Settings settings = settings_of(settings_json({{"context", 10}, {"order", order}}), "");
    std::vector<text::TokenFile> files;
    files.push_back(token_file(folder / "a.h5", 11));
    EXPECT_EQ(Data(files, settings).batch(5, 2).tokens,
              (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    files.clear();
    files.push_back(token_file(folder / "b.h5", 10));
    EXPECT_EQ(message_of([&] { const Data data(files, settings); }),
              folder / "b.h5" + ": 10 tokens, fewer than the 11 that a context of 10 needs (see --context)");
  }
}

TEST(Batch, ValidatesEvenlySpreadWindows) {
  const Folder folder;
  const text::TokenFile file = token_file(folder / "a.h5", 250);
  const Batch all = validation_batch(file, 10, 100'000);
  EXPECT_EQ(all.rows, 24);
  EXPECT_EQ(all.targets.back(), 240);
  const Batch some = validation_batch(file, 10, 40);
  EXPECT_EQ(some.rows, 4);
  for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(some.tokens[10 * row], static_cast<std::int64_t>(60 * row));
}

TEST(Batch, RefusesAnotherTokenizersTokens) {
  const Folder folder;
  const text::TokenFile file = token_file(folder / "a.h5", 20);
  const text::Tokenizer same = bytes_tokenizer();
  text::Tokenizer other = bytes_tokenizer();
  other.pre_tokenizer = text::PreTokenizer::llama3;
  EXPECT_NO_THROW(check_tokenizer(file, &same, 256, "m.h5"));
  EXPECT_EQ(message_of([&] { check_tokenizer(file, &other, 256, "m.h5"); }),
            folder / "a.h5" + ": its tokens were made by tokenizer " + text::digest(same) + ", m.h5 has " +
                text::digest(other));
  EXPECT_NO_THROW(check_tokenizer(file, nullptr, 256, "m.h5"));
  EXPECT_EQ(message_of([&] { check_tokenizer(file, nullptr, 255, "m.h5"); }),
            folder / "a.h5" + ": a vocabulary of 256, m.h5 has 255");
}

} // namespace
} // namespace noether::training
