// One flat array of float32 that holds all parameters (or gradients, or one kind of optimizer state) end to end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace noether::architecture {

namespace detail {
struct Unmap {
  std::size_t bytes = 0;
  void operator()(float* data) const;
};
} // namespace detail

/// Zeros when made. On huge pages where the system has them: half a gigabyte is then a few hundred page faults, not 120
/// 000. Move-only.
class Arena {
public:
  Arena() = default;
  explicit Arena(std::int64_t count);

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<float> span() { return {data(), static_cast<std::size_t>(size_)}; }
  std::span<const float> span() const { return {data(), static_cast<std::size_t>(size_)}; }

private:
  std::unique_ptr<float, detail::Unmap> data_;
  std::int64_t size_ = 0;
};

} // namespace noether::architecture
