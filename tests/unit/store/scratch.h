// What the tests of this room share: a folder that is removed, bytes in and out of files and pipes, messages of errors.
#pragma once

#include "base/error.h"
#include "store/stream.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

namespace noether::store {

/// A folder of its own for each test.
class Scratch {
public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "noether-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& folder() const { return folder_; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

private:
  std::string folder_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// What an Error says; "" when there is none.
inline std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// stdin or stdout is another descriptor as long as this lives.
class Redirect {
public:
  Redirect(int standard, int descriptor) : standard_(standard), kept_(::dup(standard)) { ::dup2(descriptor, standard); }
  ~Redirect() {
    ::dup2(kept_, standard_);
    ::close(kept_);
  }
  Redirect(const Redirect&) = delete;

private:
  int standard_, kept_;
};

/// Runs `reader` with stdin at the end of a pipe into which another thread puts `bytes`.
template <class Reader> auto through_pipe(const std::string& bytes, const Reader& reader) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  ::signal(SIGPIPE, SIG_IGN); // the reader may stop early
  std::jthread writer([&bytes, end = ends[1]] {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t now = ::write(end, bytes.data() + done, bytes.size() - done);
      if (now <= 0) break;
      done += static_cast<std::size_t>(now);
    }
    ::close(end);
  });
  struct End { // of the reader's side: closed before the writer is waited for
    int number;
    ~End() { ::close(number); }
  } const end{ends[0]};
  const Redirect redirect(STDIN_FILENO, ends[0]);
  return reader();
}

/// The bytes that `writer` puts into its stdout, which is a pipe.
inline std::string piped(const std::function<void()>& writer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::string bytes;
  std::jthread reader([&bytes, end = ends[0]] {
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(end, buffer, sizeof buffer)) > 0;)
      bytes.append(buffer, static_cast<std::size_t>(got));
    ::close(end);
  });
  {
    const Redirect redirect(STDOUT_FILENO, ends[1]);
    ::close(ends[1]);
    writer();
  }
  reader.join();
  return bytes;
}

} // namespace noether::store
