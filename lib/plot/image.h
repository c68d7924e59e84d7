// Pictures of one pixel a value.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace noether::plot {

using Colour = std::array<std::uint8_t, 3>; ///< red, green, blue

/// From dark blue (0) over green to yellow (1), equal steps looking equal, and told apart by people who do not see
/// red or green: Matplotlib's viridis, between nine of its colours.
Colour viridis(double value);

struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<Colour> pixels; ///< row by row, the top one first
};

/// As a PNG file.
std::string to_png(const Image& image);
/// Writes a PNG file, whole or not at all; a path as AtomicFile takes it. Throws Error.
void write_png(const std::string& path, const Image& image);

} // namespace noether::plot
