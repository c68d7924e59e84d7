// Pictures with axes, drawn by gnuplot, which is a program and need not be there.
#pragma once

#include "plot/image.h"

#include <array>
#include <string>
#include <vector>

namespace noether::plot {

/// Throws UsageError unless a picture can go to `path`: a name that ends in .png, .svg or .pdf, or - for one of
/// characters on stdout.
void check_picture(const std::string& path);

/// Runs gnuplot on `script`, whose terminal and output are set here, and writes what it drew to `path`, whole or not at
/// all. Throws Error when gnuplot is not installed, or does not like the script (its first words are in the message).
void draw(const std::string& path, const std::string& script);

/// From the low end of an axis to its high one.
using Range = std::array<double, 2>;

/// An image in a frame with axes, drawn by gnuplot after `script` (its titles and labels). Its outer edges are the ends
/// of the axes.
void draw(const std::string& path, const std::string& script, const Image& image, Range x, Range y);

/// Rows of characters, the top one first, in a frame that says where its axes begin and end.
std::string framed(const std::vector<std::string>& rows, Range x, Range y);

/// `text` between gnuplot's single quotes.
std::string quoted(const std::string& text);

} // namespace noether::plot
