#include "plot/gnuplot.h"

#include "base/error.h"
#include "store/scratch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace noether::plot {
namespace {

TEST(Framed, SaysWhereItsAxesEnd) {
  EXPECT_EQ(framed({"ab cd", "  *  "}, {-1, 2.5}, {0, 10}), "   +-----+\n"
                                                            "10 |ab cd|\n"
                                                            " 0 |  *  |\n"
                                                            "   +-----+\n"
                                                            "    -1 2.5\n");
}

TEST(CheckPicture, TakesWhatCanBeDrawn) {
  for (const char* path : {"a.png", "a.svg", "b/a.pdf", "-"}) EXPECT_NO_THROW(check_picture(path));
  for (const char* path : {"a.jpg", "png", ".png", ""}) EXPECT_THROW(check_picture(path), UsageError);
}

// The image is in the file: a picture of noise is longer than one of a single colour.
TEST(Draw, FramesAnImage) {
  if (std::system("command -v gnuplot > /dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  const store::Scratch scratch;
  const auto size = [&](bool noise, const std::string& ending) {
    Image image{64, 48, std::vector<Colour>(64 * 48, Colour{20, 40, 60})};
    for (std::size_t i = 0; noise && i < image.pixels.size(); ++i)
      image.pixels[i] = {static_cast<std::uint8_t>(i * i * 7919 >> 5), static_cast<std::uint8_t>(i * 104729 >> 4), 9};
    const std::string path = scratch / ("a" + ending);
    draw(path, "set title 'a'", image, {0, 1}, {-2, 2});
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str().size();
  };
  for (const char* ending : {".svg", ".pdf", ".png"}) {
    EXPECT_GT(size(false, ending), 1000U) << ending;
    EXPECT_GT(size(true, ending), size(false, ending) + 2000) << ending;
  }
}

} // namespace
} // namespace noether::plot
