// A bell in shared memory: who waits at it sleeps until somebody rings.
//
// The generation counts the rings. A waiter reads it, looks whether there is anything to do, and
// waits for it to change from what it read, so a ring in between is never lost. The count of
// sleepers saves the system call of waking where nobody sleeps. For both, the order of the
// operations matters and is the sequentially consistent one; tests/doorbell checks every
// interleaving of it.
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

  void ring(int who) {
    words_.generation.fetch_add(1);
    if (words_.sleepers.load() > 0) sleep_->wake(words_.generation, who);
  }

  /// Waits for a ring after generation `seen`, at most so long; may also return without one.
  /// Returns false if a signal has interrupted it. `who` tells apart those who wait at the same
  /// bell.
  bool wait(uint32_t seen, int who, int64_t nanoseconds) {
    const int64_t begun = monotonic_ns();
    const int64_t spin = std::min(policy_.begin(), nanoseconds);
    const bool heard = spin > 0 && spun(seen, begun + spin);
    bool undisturbed = true;
    if (!heard) {
      words_.sleepers.fetch_add(1);
      undisturbed = sleep_->sleep(words_.generation, seen, who, nanoseconds - spin);
      words_.sleepers.fetch_sub(1);
    }
    policy_.end(monotonic_ns() - begun, !heard);
    return undisturbed;
  }

 private:
  bool spun(uint32_t seen, int64_t until) const {
    do {
      for (int k = 0; k < 32; ++k) {
        if (words_.generation.load(std::memory_order_acquire) != seen) return true;
        pause_cpu();
      }
    } while (monotonic_ns() < until);
    return false;
  }

  BellWords& words_;
  std::unique_ptr<Sleep> sleep_;
  SpinPolicy policy_;
};

}  // namespace shoal
