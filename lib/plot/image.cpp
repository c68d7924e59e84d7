#include "plot/image.h"

#include "base/error.h"
#include "store/atomic_file.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace noether::plot {

Colour viridis(double value) {
  constexpr std::array<Colour, 9> kColours{{{68, 1, 84},
                                            {71, 45, 123},
                                            {59, 82, 139},
                                            {44, 114, 142},
                                            {33, 145, 140},
                                            {40, 174, 128},
                                            {94, 201, 98},
                                            {173, 220, 48},
                                            {253, 231, 37}}};
  const double at = std::clamp(value, 0.0, 1.0) * (kColours.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kColours.size() - 2);
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i)
    colour[i] = static_cast<std::uint8_t>(std::lround(
        kColours[below][i] + (at - static_cast<double>(below)) * (kColours[below + 1][i] - kColours[below][i])));
  return colour;
}

std::string to_png(const Image& image) {
  std::string bytes;
  png_structp writer = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp, png_const_charp text) { throw Error("a picture: {}", text); },
      [](png_structp, png_const_charp) {});
  if (writer == nullptr) throw std::bad_alloc();
  png_infop info = png_create_info_struct(writer);
  const auto release = [&info](png_struct* png) { png_destroy_write_struct(&png, &info); };
  const std::unique_ptr<png_struct, decltype(release)> owner(writer, release);
  png_set_write_fn(
      writer, &bytes,
      [](png_structp png, png_bytep some, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(some), size);
      },
      [](png_structp) {});
  png_set_IHDR(writer, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
               PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer, info);
  for (std::int64_t row = 0; row < image.height; ++row)
    png_write_row(writer, image.pixels[static_cast<std::size_t>(row * image.width)].data());
  png_write_end(writer, nullptr);
  return bytes;
}

void write_png(const std::string& path, const Image& image) {
  store::AtomicFile file(path);
  file.write(to_png(image));
  file.commit();
}

} // namespace noether::plot
