#include "architecture/arena.h"

#include "base/error.h"

#include <sys/mman.h>

#include <new>

namespace noether::architecture {

void detail::Unmap::operator()(float* data) const { munmap(data, bytes); }

Arena::Arena(std::int64_t count) : size_(count) {
  if (count == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, bytes, MADV_HUGEPAGE); // a hint: its failure changes nothing but speed
  data_ = std::unique_ptr<float, detail::Unmap>(static_cast<float*>(data), detail::Unmap{bytes});
}

} // namespace noether::architecture
