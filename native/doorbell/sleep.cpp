#include "sleep.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>
#endif

namespace shoal {

namespace {

#ifdef __linux__

class FutexSleep final : public Sleep {
 public:
  bool sleep(Word& word, uint32_t expected, int sleeper, int64_t nanoseconds) override {
    // FUTEX_WAIT_BITSET takes a deadline on the monotonic clock rather than a duration.
    timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    const int64_t total = deadline.tv_nsec + nanoseconds;
    deadline.tv_sec += static_cast<time_t>(total / 1'000'000'000);
    deadline.tv_nsec = static_cast<long>(total % 1'000'000'000);
    const long status = syscall(SYS_futex, address(word), FUTEX_WAIT_BITSET, expected, &deadline,
                                nullptr, bit_of(sleeper));
    return status == 0 || errno != EINTR;
  }

  void wake(Word& word, int sleeper) override {
    syscall(SYS_futex, address(word), FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr,
            bit_of(sleeper));
  }

 private:
  static uint32_t* address(Word& word) { return reinterpret_cast<uint32_t*>(&word); }
  static uint32_t bit_of(int sleeper) {
    return sleeper == kEveryone ? FUTEX_BITSET_MATCH_ANY : uint32_t{1} << (sleeper % 32);
  }
};

#endif

class PipeSleep final : public Sleep {
 public:
  PipeSleep(std::vector<int> read_ends, std::vector<int> write_ends)
      : read_ends_(std::move(read_ends)), write_ends_(std::move(write_ends)) {
    for (const std::vector<int>* ends : {&read_ends_, &write_ends_}) {
      for (const int end : *ends) {
        if (end >= 0) fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
      }
    }
  }

  bool sleep(Word& word, uint32_t expected, int sleeper, int64_t nanoseconds) override {
    if (word.load() != expected) return true;
    pollfd waiting{read_ends_.at(static_cast<size_t>(sleeper)), POLLIN, 0};
    // Rounded up, since a timeout of 0 ms would be a busy loop.
    const int status = poll(&waiting, 1, static_cast<int>((nanoseconds + 999'999) / 1'000'000));
    if (status < 0) return errno != EINTR;
    char bytes[64];
    while (status > 0 && read(waiting.fd, bytes, sizeof bytes) == sizeof bytes) {
    }
    return true;
  }

  void wake(Word&, int sleeper) override {
    for (size_t k = 0; k < write_ends_.size(); ++k) {
      if (sleeper != kEveryone && sleeper != static_cast<int>(k)) continue;
      // Errors are ignored: a full pipe wakes its reader too, and a closed one has no reader.
      [[maybe_unused]] const ssize_t ignored = write(write_ends_[k], "", 1);
    }
  }

 private:
  std::vector<int> read_ends_, write_ends_;
};

}  // namespace

std::unique_ptr<Sleep> make_futex_sleep() {
#ifdef __linux__
  return std::make_unique<FutexSleep>();
#else
  throw std::runtime_error("this system has no futexes: use the doorbell 'pipe'");
#endif
}

std::unique_ptr<Sleep> make_pipe_sleep(std::vector<int> read_ends, std::vector<int> write_ends) {
  return std::make_unique<PipeSleep>(std::move(read_ends), std::move(write_ends));
}

bool has_futex() {
#ifdef __linux__
  return true;
#else
  return false;
#endif
}

}  // namespace shoal
