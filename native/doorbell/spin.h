// Whether to spin for a moment before going to sleep, learned from how long waits have taken.
//
// A spin saves the cost of a wake-up where the other side is about to answer on another core. Where
// it needs this very core, a spin delays what it waits for. Nobody knows beforehand which of the
// two it is, so both ways of waiting are timed, and the faster one is taken; the other one is tried
// now and then, the more rarely the clearer it loses.
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
  explicit SpinPolicy(bool allowed) : allowed_(allowed) {}

  /// How long the wait that now begins should spin, in nanoseconds.
  int64_t begin() {
    if (!allowed_) return 0;
    spinning_ = mean_[kSpin] < 0.97 * mean_[kSleep];  // in doubt, leave the core to others
    if (--until_trial_ <= 0) {
      spinning_ = !spinning_;
      trial_ = true;
    }
    return spinning_ ? kLongest : 0;
  }

  /// Takes note of how long the wait has been.
  void end(int64_t nanoseconds) {
    if (!allowed_) return;
    // A wait far beyond any spin says nothing about spinning: the caller was busy elsewhere.
    const double length = static_cast<double>(nanoseconds < kLimit ? nanoseconds : kLimit);
    double& mean = mean_[spinning_ ? kSpin : kSleep];
    mean += (length - mean) / (trial_ ? 4 : 16);
    if (!trial_) return;
    trial_ = false;
    const double tried = mean_[spinning_ ? kSpin : kSleep];
    const double usual = mean_[spinning_ ? kSleep : kSpin];
    interval_ = tried > 1.2 * usual ? (interval_ < kRarest ? interval_ * 2 : kRarest) : kOften;
    until_trial_ = interval_;
  }

 private:
  enum { kSpin, kSleep };
  static constexpr int64_t kLongest = 300'000;
  static constexpr int64_t kLimit = 1'000'000;
  static constexpr int kOften = 16, kRarest = 1024;

  bool allowed_;
  bool spinning_ = false, trial_ = false;
  double mean_[2] = {0.0, 1.0};
  int interval_ = kOften, until_trial_ = kOften;
};

}  // namespace shoal
