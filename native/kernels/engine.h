// What all kernels have in common: the slots of a vector and what happens to them, without Python.
//
// Autoreset, time limits, statistics and failures of kernels are written here and nowhere else.
// Different slots may be worked on by several threads at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../stepper/autoreset.h"
#include "seeding.h"
#include "shoal_kernel.h"

namespace shoal {

/// How many leaves a kernel may have of each kind.
constexpr int kMaxLeaves = 32;

/// How many bytes a leaf takes in each row.
size_t leaf_bytes(const shoal_leaf& leaf);

/// Zeroed memory that begins at a cache line.
class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> data_;
};

/// Leaves side by side, each with a row for every slot.
class LeafColumns {
 public:
  LeafColumns() = default;
  LeafColumns(const std::vector<size_t>& bytes, int64_t slots);
  const std::vector<char*>& data() const { return data_; }

 private:
  std::vector<Block> blocks_;
  std::vector<char*> data_;
};

/// Where results are written: row k of everything belongs to slot k.
struct Rows {
  std::vector<char*> observations, infos;
  double* rewards = nullptr;
  uint8_t* terminated = nullptr;
  uint8_t* truncated = nullptr;
};

/// What slots carry over from step to step: columns of the arena.
struct SlotColumns {
  uint8_t* finished;
  double* episode_return;
  int64_t* episode_length;
  double* episode_start;  // seconds of the steady clock
};

/// A slot that has failed, and what its kernel said.
struct Failure {
  int64_t slot;
  const char* method;
  std::string message;
};

/// What a piece of work has come to, besides its rows.
struct JobReport {
  std::atomic<bool> any_ended{false};
  std::mutex mutex;
  std::vector<Failure> failures;
};

/// A seed for each of some slots, as 32-bit words, the lowest first; no words for none.
struct Seeds {
  std::vector<uint32_t> words;
  std::vector<size_t> ends;  // where the words of each seed end

  size_t begin(size_t k) const { return k == 0 ? 0 : ends[k - 1]; }
  size_t count(size_t k) const { return ends[k] - begin(k); }
};

struct EngineOptions {
  int64_t slots;
  Autoreset mode;
  bool statistics;
  bool check_nan;             // whether a NaN that a kernel writes is a failure
  int64_t max_episode_steps;  // 0: no limit
  Generator generator;
};

class Engine {
 public:
  /// `actions` has a column for each leaf, with a row for every slot.
  Engine(const shoal_kernel& kernel, const EngineOptions& options, const SlotColumns& columns,
         std::vector<char*> actions, std::vector<double> parameters);

  /// Steps slots from `first` to before `last`, or begins their next episodes where that is due.
  void step(int64_t first, int64_t last, const Rows& rows, JobReport& report);

  /// Begins episodes in these slots, after seeding those that have a seed. The seed of slot
  /// `first` has the number `position`.
  void reset(int64_t first, int64_t last, const Seeds& seeds, size_t position,
             const double* options, const Rows& rows, JobReport& report);

  /// Draws a slot's state.
  void draw(int64_t slot, shoal_canvas& canvas) const;

  /// Everything about a slot as bytes; and the way back.
  size_t snapshot_bytes() const;
  void save(int64_t slot, char* snapshot) const;
  /// False where it is of another kernel: then nothing has happened.
  bool restore(int64_t slot, const char* snapshot);

  const shoal_kernel& kernel() const { return kernel_; }
  const EngineOptions& options() const { return options_; }

  /// The parameters of a slot: those of all slots, until one of them gets its own.
  const double* parameters(int64_t slot) const;
  void set_parameter(int64_t slot, size_t number, double value);

  char* states() const { return states_.data(); }
  shoal_random& random(int64_t slot) const { return randoms_[slot]; }
  /// Whether a slot has a generator yet, and whether an episode has ever begun in it.
  bool is_seeded(int64_t slot) const { return begun_[static_cast<size_t>(slot)] & kSeeded; }
  bool is_begun(int64_t slot) const { return begun_[static_cast<size_t>(slot)] & kBegun; }

  /// The newest observations of all slots, and all results of those that were sent by themselves.
  const Rows& result_buffer() const { return result_buffer_; }

  /// The episode that last ended in a slot, where statistics are kept.
  struct Episode {
    double total;
    int64_t length;
    double seconds;
  };
  const Episode& ended(int64_t slot) const { return ended_[static_cast<size_t>(slot)]; }

  /// What was observed and told at the end of a slot's last episode, in the same-step mode.
  const std::vector<char*>& final_observations() const { return final_observations_.data(); }
  const std::vector<char*>& final_infos() const { return final_infos_.data(); }

  const std::vector<size_t>& observation_bytes() const { return observation_bytes_; }
  const std::vector<size_t>& info_bytes() const { return info_bytes_; }

 private:
  static constexpr uint8_t kSeeded = 1, kBegun = 2;

  class Run;

  int64_t run_end(int64_t first, int64_t last, bool resets) const;
  // Slots that fail are added to `failed`, and marked when all else has been written.
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
  std::vector<double> slot_parameters_;  // a row for each slot, or empty where all have the same

  Block states_;
  Block randoms_block_;
  shoal_random* randoms_;
  std::vector<uint8_t> begun_;
  std::vector<Episode> ended_;
  uint64_t identity_ = 0;
  int rewards_info_ = -1;  // the info that belongs to a step as its reward does, if there is one

  LeafColumns shelf_observations_, shelf_infos_, final_observations_, final_infos_;
  Block shelf_rewards_, shelf_terminated_, shelf_truncated_;
  Rows result_buffer_;
};

}  // namespace shoal
