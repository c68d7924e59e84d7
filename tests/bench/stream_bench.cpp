// How fast a checkpoint moves: to a file, from a file, and between two processes. Prints GB/s, median and best of
// several rounds. Usage: stream_bench [MEGABYTES [FOLDER]]. Compare with h5py by tests/bench/stream_h5py.py, which
// prints the same lines.
#include "store/stream.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace noether::store;

namespace {

constexpr std::size_t kArrays = 20; // as many parameters, of equal size

void report(const char* what, double bytes, const std::function<void()>& work) {
  work(); // warm-up: page cache, huge pages
  std::vector<double> seconds;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print(stderr, "{:<28} median {:6.2f} GB/s   best {:6.2f} GB/s\n", what, bytes / seconds[3] / 1e9,
             bytes / seconds[0] / 1e9);
}

void send(const std::string& path, const std::vector<float>& values) {
  FileWriter file(kCheckpointFile);
  const std::size_t each = values.size() / kArrays;
  for (std::size_t i = 0; i < kArrays; ++i)
    file.array<float>(fmt::format("/parameters/{}", i), {each}, std::span(values).subspan(i * each, each));
  OutputStream stream(path);
  stream.write(std::move(file), {});
  stream.close();
}

/// Writes what `send` writes to stdout, which `descriptor` becomes.
void send_to(int descriptor, const std::vector<float>& values) {
  ::dup2(descriptor, STDOUT_FILENO);
  ::close(descriptor);
  send("-", values);
}

} // namespace

int main(int argc, char** argv) {
  const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 500;
  const std::string path = std::string(argc > 2 ? argv[2] : ".") + "/stream_bench.h5";
  const std::vector<float> values(megabytes * 250'000 / kArrays * kArrays, 1.5F);
  std::vector<float> out(values.size(), 0.0F);
  const double bytes = static_cast<double>(values.size()) * sizeof(float);

  report("write, not synced", bytes,
         [&] { send_to(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), values); });
  report("write, synced and renamed", bytes, [&] { send(path, values); });
  report("read into memory", bytes, [&] {
    const FileReader file = open_one(path, kCheckpointFile);
    const std::size_t each = out.size() / kArrays;
    for (std::size_t i = 0; i < kArrays; ++i)
      file.read(fmt::format("/parameters/{}", i), Type::f32, out.data() + i * each, each);
  });
  report("pipe between two processes", bytes, [&] {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const pid_t writer = ::fork();
    if (writer == 0) {
      send_to(ends[1], values);
      ::_exit(0);
    }
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    const FileReader file = open_one("-", kCheckpointFile);
    if (file.view<float>("/parameters/19").back() != 1.5F) std::abort();
    ::waitpid(writer, nullptr, 0);
  });
  std::remove(path.c_str());
}
