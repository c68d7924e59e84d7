#include "regression/prompts.h"

#include "base/error.h"
#include "store/scratch.h"
#include "store/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace noether::regression {
namespace {

Prompts parse(const std::string& text) {
  std::istringstream stream(text);
  return parse_prompts(stream, "pairs.txt");
}
std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Prompts, AreReadFromText) {
  const Prompts prompts = parse("1 2 3\n4, 5, 6\n\n\n-1 0 1e-3\n7 8 9\n");
  EXPECT_EQ(prompts.count, 2);
  EXPECT_EQ(prompts.pairs, 1);
  EXPECT_EQ(prompts.dimension, 2);
  EXPECT_EQ(prompts.x, (std::vector<double>{1, 2, 4, 5, -1, 0, 7, 8}));
  EXPECT_EQ(prompts.y, (std::vector<double>{3, 6, 1e-3, 9}));
}

TEST(Prompts, SayWhatIsWrongInText) {
  EXPECT_EQ(complaint("1 2\n1 x\n"), "pairs.txt: line 2: expected numbers, found x");
  EXPECT_EQ(complaint("1 2\n1 2 3\n"), "pairs.txt: line 2: expected 2 numbers, found 3");
  EXPECT_EQ(complaint("1\n"), "pairs.txt: line 1: expected the components of x and then y, found one number");
  EXPECT_EQ(complaint("1 2\n1 2\n\n1 2\n"),
            "pairs.txt: prompt 2 has one line: expected a pair or more, and then its query");
  EXPECT_EQ(complaint("1 2\n1 2\n\n1 2\n1 2\n1 2\n"), "pairs.txt: prompt 2 has 2 pairs, and the first has 1");
  EXPECT_EQ(complaint("\n"), "pairs.txt: no prompts in it");
}

TEST(Prompts, ComeBackFromAFile) {
  const store::Scratch scratch;
  const Prompts prompts = draw_prompts({.count = 3, .pairs = 5, .dimension = 2, .noise = 0.1, .seed = 4});
  store::OutputStream output(scratch / "p.h5");
  output.write(to_file(prompts), {});
  output.close();
  const Prompts back = read_prompts(store::open_one(scratch / "p.h5", store::kTensorsFile));
  EXPECT_EQ(back.count, 3);
  EXPECT_EQ(back.pairs, 5);
  EXPECT_EQ(back.dimension, 2);
  EXPECT_EQ(back.x, prompts.x);
  EXPECT_EQ(back.y, prompts.y);
}

TEST(Prompts, AreLinearTasksWithNoise) {
  // Without noise every y of a prompt follows from as many pairs as an x has components.
  const Prompts clean = draw_prompts({.count = 50, .pairs = 3, .dimension = 1, .noise = 0, .seed = 1});
  for (std::size_t p = 0; p < 50; ++p)
    for (std::size_t i = 1; i < 4; ++i)
      EXPECT_NEAR(clean.y[4 * p + i] / clean.x[4 * p + i], clean.y[4 * p] / clean.x[4 * p], 1e-12);
  // Var y = dimension + noise^2; of 20000 values it is known to within some 2 %.
  const Prompts noisy = draw_prompts({.count = 2000, .pairs = 9, .dimension = 3, .noise = 2, .seed = 1});
  double squares = 0;
  for (const double y : noisy.y) squares += y * y;
  EXPECT_NEAR(squares / static_cast<double>(noisy.y.size()), 7, 0.35);
  // A prompt is what it is, however many there are.
  const Prompts fewer = draw_prompts({.count = 10, .pairs = 9, .dimension = 3, .noise = 2, .seed = 1});
  EXPECT_TRUE(std::equal(fewer.y.begin(), fewer.y.end(), noisy.y.begin()));
}

} // namespace
} // namespace noether::regression
