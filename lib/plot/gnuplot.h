// Pictures with axes, drawn by gnuplot, which is a program and need not be there.
#pragma once

#include <string>

namespace noether::plot {

/// Throws UsageError unless a picture can go to `path`: a name that ends in .png, .svg or .pdf, or - for one of
/// characters on stdout.
void check_picture(const std::string& path);

/// Runs gnuplot on `script`, whose terminal and output are set here, and writes what it drew to `path`, whole or not at
/// all. Throws Error when gnuplot is not installed, or does not like the script (its first words are in the message).
void draw(const std::string& path, const std::string& script);

/// `text` between gnuplot's single quotes.
std::string quoted(const std::string& text);

} // namespace noether::plot
