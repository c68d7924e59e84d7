// A hash table from pairs of token ids to a number: what a merge looks up, once for every two neighbours.
#pragma once

#include <cstdint>
#include <vector>

namespace noether::text {

/// Open addressing with linear probing, half full at most. No pair is ever removed.
class PairTable {
public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  /// Room for `count` pairs without growing.
  explicit PairTable(std::size_t count = 16) {
    std::size_t size = 32;
    while (size < 2 * count) size *= 2;
    slots_.resize(size);
  }

  /// The number kept for (left, right), or kNone.
  std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    for (std::size_t i = hash(key);; ++i) {
      const Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.value == kNone) return kNone;
      if (slot.key == key) return slot.value;
    }
  }

  /// Keeps `value` (not kNone) for (left, right) if there is none yet, and returns what is kept.
  std::uint32_t insert(std::uint32_t left, std::uint32_t right, std::uint32_t value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    Slot& slot = free_slot(key);
    if (slot.value == kNone) {
      slot = {key, value};
      ++count_;
    }
    return slot.value;
  }

private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = kNone;
  };
  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(key ^ key >> 32);
  }
  Slot& free_slot(std::uint64_t key) {
    std::size_t i = hash(key);
    while (slots_[i & (slots_.size() - 1)].value != kNone && slots_[i & (slots_.size() - 1)].key != key) ++i;
    return slots_[i & (slots_.size() - 1)];
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.value != kNone) free_slot(slot.key) = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

} // namespace noether::text
