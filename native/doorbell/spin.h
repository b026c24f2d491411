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
    if (left_ == 0) {
      trying_ = !trying_;
      left_ = trying_ ? kTrial : interval_;
      tried_ = 0.0;
    }
    --left_;
    return prefers_spin_ != trying_ ? kLongest : 0;
  }

  /// Takes note of how long the wait has been, and whether it has spun in vain.
  void end(int64_t nanoseconds, bool in_vain) {
    if (!allowed_) return;
    // A wait far beyond any spin says nothing about spinning: the caller was busy elsewhere.
    const auto length = static_cast<double>(nanoseconds < kLimit ? nanoseconds : kLimit);
    if (trying_) {
      tried_ += length / kTrial;
      if (left_ == 0) judge();
      return;
    }
    usual_ += (length - usual_) / 16;
    vain_ += ((in_vain ? 1.0 : 0.0) - vain_) / 16;
    if (in_vain) left_ = left_ > kHurry ? left_ - kHurry : 0;
  }

 private:
  /// After a trial of the other way: whether to change to it. In doubt all stays as it is, except
  /// that spinning in vain is given up for whatever is no slower.
  void judge() {
    const double enough = prefers_spin_ ? (vain_ > 0.5 ? 1.0 : 0.85) : 0.9;
    if (tried_ <= enough * usual_) {
      prefers_spin_ = !prefers_spin_;
      usual_ = tried_;
      vain_ = 0.0;
      interval_ = kOften;
    } else {
      interval_ = interval_ < kRarest ? 2 * interval_ : kRarest;
    }
  }

  static constexpr int64_t kLongest = 300'000;
  static constexpr int64_t kLimit = 1'000'000;
  static constexpr int kTrial = 8, kOften = 64, kRarest = 2048, kHurry = 16;

  bool allowed_;
  bool prefers_spin_ = true, trying_ = false;
  int interval_ = kOften, left_ = kOften;
  double usual_ = 0.0, tried_ = 0.0;  // how long waits are, one way and the other
  double vain_ = 0.0;                 // how many of the spins are in vain
};

}  // namespace shoal
