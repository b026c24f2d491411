// Decides whether a wait spins before it sleeps, from how often recent spins failed.
//
// A spin saves the cost of a wake-up if the other side is about to answer on another core. If the
// other side takes longer, or needs this core, the spin fails and delays others. If most recent
// spins failed, hundreds of waits do not spin; the length of this pause doubles each time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace shoal {

inline int64_t monotonic_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinPolicy {
 public:
  /// `allowed`: whether there are enough cores for all threads that may run at the same time.
  explicit SpinPolicy(bool allowed) : spins_(allowed), remaining_pause_(allowed ? 0 : -1) {}

  /// How long the next wait should spin, in nanoseconds.
  int64_t begin() const { return spins_ ? kLongest : 0; }

  /// Records how long a wait took, and whether its spin, if it spun, ended without a ring.
  void end(int64_t nanoseconds, bool spin_failed) {
    if (nanoseconds > kNoWork) return;  // there was no work that the spin could have delayed
    if (spins_) {
      failure_rate_ += ((spin_failed ? 1.0 : 0.0) - failure_rate_) / 8;
      if (failure_rate_ > 0.5) {
        spins_ = false;
        remaining_pause_ = pause_;
        pause_ = pause_ < kLongestPause ? 2 * pause_ : kLongestPause;
      } else if (failure_rate_ < 0.01) {
        pause_ = kPause;
      }
    } else if (remaining_pause_ > 0 && --remaining_pause_ == 0) {
      spins_ = true;
      failure_rate_ = 0.25;
    }
  }

 private:
  static constexpr int64_t kLongest = 300'000;
  static constexpr int64_t kNoWork = 20'000'000;
  static constexpr int kPause = 512, kLongestPause = 16'384;

  bool spins_;
  int remaining_pause_;        // waits until spinning is tried again; negative: never
  int pause_ = kPause;         // length of the next pause, in waits
  double failure_rate_ = 0.0;  // of recent spins
};

}  // namespace shoal
