// Counts and times batches for somebody who watches, in a few hundred nanoseconds each.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "../python/object.h"
#include "../stepper/autoreset.h"

namespace shoal {

/// Steps, episodes and the times of batches of a vector. Belongs to the thread that steps it.
///
/// All slots count for how many steps and episodes there were. Returns and lengths are followed in
/// the first slots only, as many as cost next to nothing.
class Meter {
 public:
  static constexpr int64_t kFollowed = 128;
  /// Bins of batch times: ten for each power of ten, from 100 ns on.
  static constexpr size_t kBins = 100;

  /// `interval` seconds lie between two times at which a batch is said to be due for a look.
  Meter(int64_t num_envs, Autoreset mode, double interval);

  /// A batch begins.
  void begin();

  /// A batch of all slots is there; whether it is time to look.
  bool end(nb::handle rewards, nb::handle terminated, nb::handle truncated);

  /// As `end`, of a batch of these slots only.
  bool end_some(nb::handle slots, nb::handle rewards, nb::handle terminated, nb::handle truncated);

  /// These slots begin new episodes, all of them where `slots` is None.
  void reset(nb::handle slots);

  int64_t steps() const { return steps_; }
  int64_t batches() const { return batches_; }
  int64_t episodes() const { return episodes_; }
  /// How long the newest batch took, in seconds.
  double latest() const { return latest_; }
  /// Seconds that counting has taken so far.
  double spent() const { return spent_; }

  /// How often a batch took how long: a count for each bin. The first has what is shorter, too, and
  /// the last what is longer.
  std::vector<int64_t> times() const { return {bins_.begin(), bins_.end()}; }
  static std::vector<double> edges();

  /// The longest batch since this was asked for, in seconds.
  double take_longest();

  /// Ended episodes since this was asked for, as (slot, return, length); the newest few thousand.
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
  bool finish(int64_t count, double arrived);

  int64_t num_envs_;
  Autoreset mode_;
  double interval_;
  double began_ = 0, due_ = 0, spent_ = 0, latest_ = 0, longest_ = 0;
  int64_t steps_ = 0, batches_ = 0, episodes_ = 0;
  std::vector<double> returns_;
  std::vector<int64_t> lengths_;
  std::array<int64_t, kBins> bins_{};
  std::vector<Ended> ended_;  // a ring once it is full
  size_t oldest_ = 0;
};

}  // namespace shoal
