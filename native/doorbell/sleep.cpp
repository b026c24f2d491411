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
  bool sleep(Word& word, uint32_t expected, int who, int64_t nanoseconds) override {
    // With a bit set, the time is a point on the monotonic clock rather than a length.
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t total = until.tv_nsec + nanoseconds;
    until.tv_sec += static_cast<time_t>(total / 1'000'000'000);
    until.tv_nsec = static_cast<long>(total % 1'000'000'000);
    const long status = syscall(SYS_futex, address(word), FUTEX_WAIT_BITSET, expected, &until,
                                nullptr, bit_of(who));
    return status == 0 || errno != EINTR;
  }

  void wake(Word& word, int who) override {
    syscall(SYS_futex, address(word), FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, bit_of(who));
  }

 private:
  static uint32_t* address(Word& word) { return reinterpret_cast<uint32_t*>(&word); }
  static uint32_t bit_of(int who) {
    return who == kEveryone ? FUTEX_BITSET_MATCH_ANY : uint32_t{1} << (who % 32);
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

  bool sleep(Word& word, uint32_t expected, int who, int64_t nanoseconds) override {
    if (word.load() != expected) return true;
    pollfd waiting{read_ends_.at(static_cast<size_t>(who)), POLLIN, 0};
    // Rounded up, or a short time would be a busy loop.
    const int status = poll(&waiting, 1, static_cast<int>((nanoseconds + 999'999) / 1'000'000));
    if (status < 0) return errno != EINTR;
    char bytes[64];
    while (status > 0 && read(waiting.fd, bytes, sizeof bytes) == sizeof bytes) {
    }
    return true;
  }

  void wake(Word&, int who) override {
    for (size_t k = 0; k < write_ends_.size(); ++k) {
      if (who != kEveryone && who != static_cast<int>(k)) continue;
      // A full pipe wakes its reader just as well, and a reader that is gone needs no waking.
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
