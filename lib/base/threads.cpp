#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace noether {

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work) {
  if (threads <= 0) threads = usable_processors();
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto run = [&] {
    try {
      for (std::int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<std::size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  others.clear(); // joins
  if (failure) std::rethrow_exception(failure);
}

} // namespace noether
