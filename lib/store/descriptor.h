// Owners of what the kernel lends: file descriptors and mappings.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace noether::store {

/// Owns one file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  operator int() const { return number_; }

private:
  int number_ = -1;
};

/// Owns one mapping, whole: what mmap() returned and how long it was asked to be.
class Mapping {
public:
  Mapping() = default;
  Mapping(void* data, std::size_t size) : data_(data), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, MAP_FAILED)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  explicit operator bool() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

} // namespace noether::store
