// A bell in shared memory: a waiter sleeps until another thread or process rings.
//
// The generation counts the rings. A waiter reads it, checks whether there is work, and waits until
// the generation differs from the value that it read, so a ring in between is never lost. The count
// of sleepers saves the system call for waking if there are none. All operations on both words are
// sequentially consistent, and their order matters; tests/doorbell checks every interleaving.
#pragma once

#include <algorithm>

#include "sleep.h"
#include "spin.h"

namespace shoal {

struct alignas(64) BellWords {
  Word generation{0};
  Word sleepers{0};
};

class Bell {
 public:
  Bell(BellWords& words, std::unique_ptr<Sleep> sleep, bool may_spin)
      : words_(words), sleep_(std::move(sleep)), policy_(may_spin) {}

  uint32_t generation() const { return words_.generation.load(); }

  /// Wakes the waiter with this number, or all with `kEveryone`.
  void ring(int waiter) {
    words_.generation.fetch_add(1);
    if (words_.sleepers.load() > 0) sleep_->wake(words_.generation, waiter);
  }

  /// Waits at most `nanoseconds` for a ring after generation `seen`; may also return without one.
  /// Returns false if a signal interrupted it. `waiter` is the caller's number at this bell.
  bool wait(uint32_t seen, int waiter, int64_t nanoseconds) {
    const int64_t start = monotonic_ns();
    const int64_t spin = std::min(policy_.begin(), nanoseconds);
    const bool rang = spin > 0 && spin_until_ring(seen, start + spin);
    bool completed = true;
    if (!rang) {
      words_.sleepers.fetch_add(1);
      completed = sleep_->sleep(words_.generation, seen, waiter, nanoseconds - spin);
      words_.sleepers.fetch_sub(1);
    }
    policy_.end(monotonic_ns() - start, !rang);
    return completed;
  }

 private:
  /// Returns whether there was a ring before the deadline.
  bool spin_until_ring(uint32_t seen, int64_t deadline) const {
    do {
      for (int k = 0; k < 32; ++k) {
        if (words_.generation.load(std::memory_order_acquire) != seen) return true;
        pause_cpu();
      }
    } while (monotonic_ns() < deadline);
    return false;
  }

  BellWords& words_;
  std::unique_ptr<Sleep> sleep_;
  SpinPolicy policy_;
};

}  // namespace shoal
