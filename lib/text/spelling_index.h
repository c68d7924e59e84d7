// From the bytes of a token to its id.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::text {

/// Open addressing over spellings that stay where they are; half full at most. Built in a few milliseconds for 100 000
/// tokens.
class SpellingIndex {
public:
  explicit SpellingIndex(const std::vector<std::string>& spellings) : spellings_(&spellings) {
    std::size_t size = 32;
    while (size < 2 * spellings.size()) size *= 2;
    slots_.resize(size);
  }

  /// Adds token `id`; false when another with its bytes has been added before.
  bool add(std::uint32_t id) {
    Slot& slot = slots_[place((*spellings_)[id])];
    if (slot.id != kEmpty) return false;
    slot = {tag((*spellings_)[id]), id};
    return true;
  }
  std::optional<std::uint32_t> find(std::string_view spelling) const {
    const Slot& slot = slots_[place(spelling)];
    if (slot.id == kEmpty) return std::nullopt;
    return slot.id;
  }

private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
  struct Slot {
    std::uint32_t tag = 0, id = kEmpty;
  };
  static std::uint32_t tag(std::string_view text) {
    return static_cast<std::uint32_t>(XXH3_64bits(text.data(), text.size()) >> 32);
  }
  std::size_t place(std::string_view text) const {
    const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
    for (std::size_t i = hash;; ++i) {
      const Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.id == kEmpty || (slot.tag == hash >> 32 && (*spellings_)[slot.id] == text))
        return i & (slots_.size() - 1);
    }
  }

  const std::vector<std::string>* spellings_;
  std::vector<Slot> slots_;
};

} // namespace noether::text
