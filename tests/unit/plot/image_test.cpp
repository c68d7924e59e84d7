// Pictures are read back by libpng's simple interface, which is other code than what writes them.
#include "plot/image.h"

#include "base/error.h"
#include "store/scratch.h"

#include <gtest/gtest.h>
#include <png.h>

namespace noether::plot {
namespace {

TEST(WritePng, KeepsEveryPixel) {
  const store::Scratch scratch;
  Image image{5, 3, {}};
  for (int i = 0; i < 15; ++i) image.pixels.push_back(viridis(i / 14.0));
  write_png(scratch / "a.png", image);
  png_image read{};
  read.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&read, (scratch / "a.png").c_str()), 0);
  EXPECT_EQ(read.width, 5U);
  EXPECT_EQ(read.height, 3U);
  read.format = PNG_FORMAT_RGB;
  std::vector<Colour> pixels(15);
  ASSERT_NE(png_image_finish_read(&read, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(pixels, image.pixels);
}

TEST(WritePng, SaysWhatIsWrong) {
  EXPECT_THROW(write_png("/dev/full", {1, 1, {{0, 0, 0}}}), Error);
  EXPECT_THROW(write_png("/no/such/folder/a.png", {1, 1, {{0, 0, 0}}}), Error);
}

// Lightness rises throughout: the order is seen without colours.
TEST(Viridis, BecomesLighter) {
  double last = -1;
  for (int i = 0; i <= 100; ++i) {
    const Colour c = viridis(i / 100.0);
    const double light = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
    EXPECT_GE(light, last);
    last = light;
  }
  EXPECT_EQ(viridis(-1), viridis(0));
  EXPECT_EQ(viridis(2), viridis(1));
}

} // namespace
} // namespace noether::plot
