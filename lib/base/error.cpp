#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <numeric>

namespace noether {
namespace {

/// Edits (insertion, deletion, replacement, swap of neighbours) from a to b: Damerau-Levenshtein, restricted form.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

} // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::vector<std::pair<std::size_t, std::string>> close;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // A third of the letters may be wrong: more than that is another word. A shared beginning counts as close too.
    const bool begins = word.size() >= 4 && candidate.starts_with(word);
    if (begins || distance <= std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3))
      close.emplace_back(begins ? std::min<std::size_t>(distance, 1) : distance, candidate);
  }
  std::stable_sort(close.begin(), close.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : close)
    if (names.size() < 2 && distance == close.front().first) names.push_back(name);
  return names;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> names = nearest(word, candidates);
  if (names.empty()) return "";
  return fmt::format(" (did you mean {}?)", fmt::join(names, " or "));
}

std::string system_reason(int number) {
  std::string text = std::strerror(number); // NOLINT(concurrency-mt-unsafe): glibc's is safe for known numbers
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

} // namespace noether
