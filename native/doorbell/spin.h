// Whether to spin for a moment before going to sleep, learned from how often it was in vain.
//
// A spin saves the cost of a wake-up where the other side is about to answer on another core. Where
// the other side takes longer, or needs this very core, a spin is in vain, and delays others. If
// most of the latest were, there is no spinning for hundreds of waits, then for twice as many, and
// so on.
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
  /// `allowed`: whether there are cores enough for everyone who may run at the same time.
  explicit SpinPolicy(bool allowed) : spins_(allowed), waits_left_(allowed ? 0 : -1) {}

  /// How long the wait that now begins should spin, in nanoseconds.
  int64_t begin() const { return spins_ ? kLongest : 0; }

  /// Takes note of how long a wait has been, and whether it has spun in vain.
  void end(int64_t nanoseconds, bool in_vain) {
    if (nanoseconds > kNoWork) return;  // nobody was at work, and nobody was delayed
    if (spins_) {
      vain_ += ((in_vain ? 1.0 : 0.0) - vain_) / 8;
      if (vain_ > 0.5) {
        spins_ = false;
        waits_left_ = pause_;
        pause_ = pause_ < kLongestPause ? 2 * pause_ : kLongestPause;
      } else if (vain_ < 0.01) {
        pause_ = kPause;
      }
    } else if (waits_left_ > 0 && --waits_left_ == 0) {
      spins_ = true;
      vain_ = 0.25;
    }
  }

 private:
  static constexpr int64_t kLongest = 300'000;
  static constexpr int64_t kNoWork = 20'000'000;
  static constexpr int kPause = 512, kLongestPause = 16'384;

  bool spins_;
  int waits_left_;  // without spinning, before it is tried again; negative: never
  int pause_ = kPause;
  double vain_ = 0.0;  // how many of the latest spins were in vain
};

}  // namespace shoal
