// Work shared among threads, in pieces whose results do not depend on how many threads there are.
#pragma once

#include <cstdint>
#include <functional>

namespace noether {

/// How many processors this process may run on (its affinity mask, not the machine's count).
int usable_processors();

/// Calls work(i) for each i in [0, count), on up to `threads` threads (0: usable_processors()), the calling one
/// included. Indices are handed out in order, each once; the first exception is rethrown here when all threads have
/// stopped. Write results by index: then they are the same for any number of threads.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work);

} // namespace noether
