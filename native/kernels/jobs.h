// What is done with slots, cut into chunks for the threads.
#pragma once

#include "../threads/team.h"
#include "engine.h"

namespace shoal {

/// A step or a reset of some slots.
class SlotJob final : public ChunkedJob {
 public:
  struct Reset {
    Seeds seeds;
    std::vector<double> options;
  };

  /// Of all slots where `slots` is empty. `reset` is null for a step. `first_come`: whether
  /// finished chunks are asked for one by one.
  SlotJob(std::shared_ptr<Engine> engine, std::vector<int64_t> slots, Rows rows,
          std::unique_ptr<Reset> reset, int64_t chunk_slots, bool first_come, int participants);

  int64_t slot_count() const { return count_; }
  bool is_reset() const { return reset_ != nullptr; }
  JobReport& report() { return report_; }

  /// How long it has kept threads busy, in nanoseconds.
  int64_t busy() const { return busy_.load(std::memory_order_relaxed); }

  /// The chunk that was finished as the `place`th, or -1 where there is none yet.
  int64_t finished_chunk(int64_t place) const;
  void append_slots(int64_t chunk, std::vector<int64_t>& slots) const;

 protected:
  void run(int64_t chunk) override;

 private:
  void run_slots(int64_t first, int64_t last, int64_t position);
  int64_t slot(int64_t k) const { return slots_.empty() ? k : slots_[static_cast<size_t>(k)]; }

  const std::shared_ptr<Engine> engine_;
  const std::vector<int64_t> slots_;
  const Rows rows_;
  const std::unique_ptr<Reset> reset_;
  const int64_t count_, chunk_slots_;
  JobReport report_;
  std::vector<std::atomic<int64_t>> order_;  // chunks in the order in which they were finished
  std::atomic<int64_t> finished_{0};
  std::atomic<int64_t> busy_{0};
};

/// Copies actions to where kernels read them, and looks whether they keep their bounds.
class CopyJob final : public ChunkedJob {
 public:
  /// From and to rows of so many bytes. Bounds, where there are any, are those of 64-bit integers.
  struct Copy {
    const char* source;
    char* target;
    size_t bytes;
    bool is_bounded;
    int64_t low, high;
  };

  CopyJob(const Copy& copy, int64_t slots, int participants);

  bool all_within_bounds() const { return within_.load(std::memory_order_acquire); }

 protected:
  void run(int64_t chunk) override;

 private:
  const Copy copy_;
  const int64_t slots_;
  std::atomic<bool> within_{true};
};

/// Pictures of some slots, one chunk each.
class DrawJob final : public ChunkedJob {
 public:
  /// `pixels` has room for a picture of the kernel's size for each slot.
  DrawJob(std::shared_ptr<Engine> engine, std::vector<int64_t> slots, uint8_t* pixels,
          int participants);

 protected:
  void run(int64_t chunk) override;

 private:
  const std::shared_ptr<Engine> engine_;
  const std::vector<int64_t> slots_;
  uint8_t* const pixels_;
};

}  // namespace shoal
