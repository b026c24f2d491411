// The engine steps and resets the slots of a vector with a kernel. No Python.
//
// It implements what all kernels have in common: autoreset, time limits, episode statistics and
// failures. Threads may call step and reset concurrently for disjoint slots.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "../stepper/autoreset.h"
#include "seeding.h"
#include "shoal_kernel.h"
#include "slot_memory.h"

namespace shoal {

/// The maximum number of leaves of each kind.
constexpr int kMaxLeaves = 32;

/// The columns that results are written to: row k belongs to slot k.
struct Rows {
  std::vector<char*> observations, infos;
  double* rewards = nullptr;
  uint8_t* terminated = nullptr;
  uint8_t* truncated = nullptr;
};

/// The columns of the arena with data that slots carry over from step to step.
struct SlotColumns {
  uint8_t* finished;
  double* episode_return;
  int64_t* episode_length;
  double* episode_start;  // by Engine::now()
};

/// A failed slot, with the message of its kernel.
struct Failure {
  int64_t slot;
  const char* method;
  std::string message;
};

/// The results of a job besides its rows. Several threads write to it.
struct JobReport {
  std::atomic<bool> any_ended{false};
  std::mutex mutex;
  std::vector<Failure> failures;
};

/// A seed for each slot of a reset, as 32-bit words, lowest first; no words: not seeded.
struct Seeds {
  std::vector<uint32_t> words;
  std::vector<size_t> ends;  // the end of each seed's words

  size_t begin(size_t k) const { return k == 0 ? 0 : ends[k - 1]; }
  size_t count(size_t k) const { return ends[k] - begin(k); }
};

struct EngineOptions {
  int64_t slots;
  Autoreset mode;
  bool statistics;
  bool check_nan;             // whether a NaN written by a kernel is a failure
  int64_t max_episode_steps;  // 0: no limit
  Generator generator;
};

class Engine {
 public:
  /// `actions`: a column per leaf, each with a row for every slot.
  Engine(const shoal_kernel& kernel, const EngineOptions& options, const SlotColumns& columns,
         std::vector<char*> actions, std::vector<double> parameters);

  /// Steps the slots in [first, last); resets those whose autoreset is due instead.
  void step(int64_t first, int64_t last, const Rows& rows, JobReport& report);

  /// Seeds and resets the slots in [first, last). The seed of slot `first` is number `position`.
  void reset(int64_t first, int64_t last, const Seeds& seeds, size_t position,
             const double* options, const Rows& rows, JobReport& report);

  /// Draws a slot.
  void draw(int64_t slot, shoal_canvas& canvas) const;

  /// Saves a slot as snapshot_bytes() bytes, and restores it.
  size_t snapshot_bytes() const;
  void save(int64_t slot, char* snapshot) const;
  /// Returns false, and changes nothing, if the snapshot belongs to another kernel.
  bool restore(int64_t slot, const char* snapshot);

  const shoal_kernel& kernel() const { return kernel_; }
  const EngineOptions& options() const { return options_; }

  /// The parameters of a slot. Slots share one array until a parameter of one slot is changed.
  const double* parameters(int64_t slot) const;
  void set_parameter(int64_t slot, size_t number, double value);

  char* states() const { return states_.data(); }
  shoal_random& random(int64_t slot) const { return randoms_[slot]; }
  /// Whether a slot was seeded, and whether it was reset.
  bool is_seeded(int64_t slot) const { return begun_[static_cast<size_t>(slot)] & kSeeded; }
  bool is_begun(int64_t slot) const { return begun_[static_cast<size_t>(slot)] & kBegun; }

  /// The latest observations of all slots, and the results of slots that were sent separately.
  const Rows& result_buffer() const { return result_buffer_; }

  /// The last finished episode of a slot, if statistics are enabled.
  struct Episode {
    double total;
    int64_t length;
    double seconds;
  };
  const Episode& ended(int64_t slot) const { return ended_[static_cast<size_t>(slot)]; }

  /// The observations and infos at the end of each slot's last episode, in same-step mode.
  const std::vector<char*>& final_observations() const { return final_observations_.data(); }
  const std::vector<char*>& final_infos() const { return final_infos_.data(); }

  const std::vector<size_t>& observation_bytes() const { return observation_bytes_; }
  const std::vector<size_t>& info_bytes() const { return info_bytes_; }

 private:
  static constexpr uint8_t kSeeded = 1, kBegun = 2;

  class Run;

  /// The steady clock in seconds.
  static double now();
  /// A hash that is equal for kernels with the same name, state size and observations.
  static uint64_t identity_of(const shoal_kernel& kernel);

  int64_t run_end(int64_t first, int64_t last, bool resets) const;
  // Failed slots are added to `failed` and marked after everything else has been written.
  void step_run(int64_t first, int64_t last, const Rows& rows, std::vector<int64_t>& failed,
                JobReport& report);
  void begin_run(int64_t first, int64_t last, const double* options, const Rows& rows,
                 std::vector<int64_t>& failed, JobReport& report);
  template <class Function>
  void call(int64_t first, int64_t last, const Rows& rows, const char* method,
            std::vector<int64_t>& failed, JobReport& report, const Function& function);
  void settle(int64_t first, int64_t last, const Rows& rows, JobReport& report);
  void report_nan(int64_t first, int64_t last, const Rows& rows, bool stepped,
                  std::vector<int64_t>& failed, JobReport& report);
  static void fail(int64_t slot, const char* method, std::string message,
                   std::vector<int64_t>& failed, JobReport& report);
  void mark(const std::vector<int64_t>& failed);
  void restart_ended(int64_t first, int64_t last, const Rows& rows, std::vector<int64_t>& failed,
                     JobReport& report);
  void keep_newest(int64_t first, int64_t last, const Rows& rows);

  const shoal_kernel& kernel_;
  const EngineOptions options_;
  const SlotColumns columns_;
  const std::vector<char*> actions_;
  const std::vector<size_t> action_bytes_, observation_bytes_, info_bytes_;
  std::vector<double> parameters_, option_defaults_;
  std::vector<double> slot_parameters_;  // a row per slot; empty: all slots share parameters_

  Block states_;
  Block randoms_block_;
  shoal_random* randoms_;
  std::vector<uint8_t> begun_;
  std::vector<Episode> ended_;
  uint64_t identity_ = 0;
  int rewards_info_ = -1;  // the index of the info SHOAL_REWARDS, or -1

  // The memory of result_buffer_.
  LeafColumns buffer_observations_, buffer_infos_;
  Block buffer_rewards_, buffer_terminated_, buffer_truncated_;
  Rows result_buffer_;
  LeafColumns final_observations_, final_infos_;
};

}  // namespace shoal
