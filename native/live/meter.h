// Counts and times the batches of a watched vector, in a few hundred nanoseconds per batch.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "../python/object.h"
#include "../stepper/autoreset.h"

namespace shoal {

/// Steps, episodes and batch times of a vector. Not thread-safe: used by the stepping thread only.
///
/// Steps and episodes are counted in all slots, returns and lengths only in the first `kTracked`
/// slots, which keeps the cost negligible.
class Meter {
 public:
  static constexpr int64_t kTracked = 128;
  /// Bins of batch times: ten per decade, starting at 100 ns.
  static constexpr size_t kBins = 100;

  /// `end` and `end_some` return true once every `interval` seconds.
  Meter(int64_t num_envs, Autoreset mode, double interval);

  /// Starts to time a batch.
  void begin();

  /// Counts a batch of all slots; returns whether `interval` has passed since it last returned
  /// true.
  bool end(nb::handle rewards, nb::handle terminated, nb::handle truncated);

  /// Like `end`, for a batch of some slots.
  bool end_some(nb::handle slots, nb::handle rewards, nb::handle terminated, nb::handle truncated);

  /// Starts new episodes in these slots; in all slots if `slots` is None.
  void reset(nb::handle slots);

  int64_t steps() const { return steps_; }
  int64_t batches() const { return batches_; }
  int64_t episodes() const { return episodes_; }
  /// Duration of the newest batch in seconds.
  double latest() const { return latest_; }
  /// Seconds spent on counting so far.
  double spent() const { return spent_; }

  /// The histogram of batch times. The first bin includes all shorter times, the last all longer
  /// ones.
  std::vector<int64_t> times() const { return {bins_.begin(), bins_.end()}; }
  /// The edges of the bins in seconds.
  static std::vector<double> edges();

  /// Returns the longest batch time in seconds since the last call.
  double take_longest();

  /// Returns the episodes that ended since the last call as (slot, return, length), up to the
  /// newest few thousand.
  nb::list take_ended();

 private:
  struct Ended {
    int64_t slot;
    double total;
    int64_t length;
  };

  double now() const;
  void time_batch(double seconds);
  void end_episode(int64_t slot);
  bool finish(int64_t count, double received);

  int64_t num_envs_;
  Autoreset mode_;
  double interval_;
  double start_ = 0, due_ = 0, spent_ = 0, latest_ = 0, longest_ = 0;
  int64_t steps_ = 0, batches_ = 0, episodes_ = 0;
  std::vector<double> returns_;
  std::vector<int64_t> lengths_;
  std::array<int64_t, kBins> bins_{};
  std::vector<Ended> ended_;  // a ring buffer once it is full
  size_t oldest_ = 0;
};

}  // namespace shoal
