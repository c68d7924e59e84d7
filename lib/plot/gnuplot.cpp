// The script goes to gnuplot in a file without a name, and its picture comes back through a pipe.
#include "plot/gnuplot.h"

#include "base/error.h"
#include "store/atomic_file.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace noether::plot {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTerminals{
    {{".png", "pngcairo noenhanced size 1000, 640 font 'sans,11'"},
     {".svg", "svg noenhanced size 1000, 640 font 'sans,12'"},
     {".pdf", "pdfcairo noenhanced size 7, 4.5 font 'sans,10'"}}};

std::string_view terminal_of(const std::string& path) {
  if (path == "-") return "dumb noenhanced size 100, 30";
  for (const auto& [ending, terminal] : kTerminals)
    if (path.size() > ending.size() && path.ends_with(ending)) return terminal;
  throw UsageError("{}: expected a picture's name, which ends in .png, .svg or .pdf, or -", path);
}

/// A file without a name that the program to be started can open.
class Nameless {
public:
  explicit Nameless(std::string_view text) : descriptor_(memfd_create("noether", 0)) {
    if (descriptor_ < 0) throw Error("gnuplot: {}", system_reason(errno));
    store::write_all(descriptor_, text.data(), text.size(), "gnuplot's script");
  }
  Nameless(const Nameless&) = delete;
  Nameless& operator=(const Nameless&) = delete;
  ~Nameless() { close(descriptor_); }
  std::string path() const { return fmt::format("/dev/fd/{}", descriptor_); }
  /// Its first line that is not blank.
  std::string first_line() const {
    std::array<char, 4096> buffer{};
    const ssize_t size = pread(descriptor_, buffer.data(), buffer.size(), 0);
    const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    const std::size_t begin = text.find_first_not_of(" \t\r\n^");
    return begin == text.npos ? "" : std::string(text.substr(begin, text.find('\n', begin) - begin));
  }

private:
  int descriptor_;
};

} // namespace

void check_picture(const std::string& path) { terminal_of(path); }

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c == '\n' ? ' ' : c);
  return out + "'";
}

void draw(const std::string& path, const std::string& script, const Image& image, Range x, Range y) {
  const Nameless pixels(to_png(image));
  const double width = (x[1] - x[0]) / static_cast<double>(image.width),
               height = (y[1] - y[0]) / static_cast<double>(image.height);
  // gnuplot counts rows from the bottom, and places the middles of pixels.
  draw(path, fmt::format("{}\nset xrange [{}:{}]\nset yrange [{}:{}]\nplot {} binary filetype=png "
                         "origin=({}, {}) dx={} dy={} with rgbimage notitle\n",
                         script, x[0], x[1], y[0], y[1], quoted(pixels.path()), x[0] + width / 2, y[0] + height / 2,
                         width, height));
}

std::string framed(const std::vector<std::string>& rows, Range x, Range y) {
  const std::string top = fmt::format("{:.4g}", y[1]), bottom = fmt::format("{:.4g}", y[0]);
  const std::size_t margin = std::max(top.size(), bottom.size()), width = rows.empty() ? 0 : rows.front().size();
  const std::string edge = fmt::format("{:{}} +{}+\n", "", margin, std::string(width, '-'));
  std::string out = edge;
  for (std::size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("{:>{}} |{}|\n", i == 0 ? top : i + 1 == rows.size() ? bottom : "", margin, rows[i]);
  const std::string left = fmt::format("{:.4g}", x[0]), right = fmt::format("{:.4g}", x[1]);
  return out + edge +
         fmt::format("{:{}}  {}{:>{}}\n", "", margin, left, right,
                     std::max(width, left.size() + 1 + right.size()) - left.size());
}

void draw(const std::string& path, const std::string& script) {
  const Nameless input(fmt::format("set terminal {}\nset encoding utf8\n{}", terminal_of(path), script)),
      complaints("");
  FILE* pipe = popen(fmt::format("gnuplot {} 2>{}", input.path(), complaints.path()).c_str(), "re");
  if (pipe == nullptr) throw Error("gnuplot: {}", system_reason(errno));
  std::string picture;
  std::array<char, 65536> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    picture.append(buffer.data(), size);
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw Error("{}: pictures are drawn by gnuplot, which is not installed", path);
  if (status != 0 || picture.empty()) throw Error("{}: gnuplot failed: {}", path, complaints.first_line());
  if (path == "-") {
    store::write_all(STDOUT_FILENO, picture.data(), picture.size(), "stdout");
    return;
  }
  store::AtomicFile file(path);
  file.write(picture);
  file.commit();
}

} // namespace noether::plot
