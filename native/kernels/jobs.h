// Work on slots, divided into chunks for a thread team: steps and resets, copies, pictures.
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

  /// `slots`: empty for all slots. `reset`: null for a step. `chunk_slots`: slots per chunk.
  /// `first_come`: whether the caller receives chunks one by one, as they finish.
  SlotJob(std::shared_ptr<Engine> engine, std::vector<int64_t> slots, Rows rows,
          std::unique_ptr<Reset> reset, int64_t chunk_slots, bool first_come, int participants);

  int64_t slot_count() const { return count_; }
  bool is_reset() const { return reset_ != nullptr; }
  JobReport& report() { return report_; }

  /// The time that threads have spent on this job so far, summed, in nanoseconds.
  int64_t busy() const { return busy_.load(std::memory_order_relaxed); }

  /// The chunk that finished at `place` in the order of finishing, or -1 if fewer have finished.
  /// For first-come jobs only.
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
  std::vector<std::atomic<int64_t>> order_;  // chunks in the order of finishing; -1: not finished
  std::atomic<int64_t> finished_{0};
  std::atomic<int64_t> busy_{0};
};

/// Copies actions to the memory that kernels read, and checks their bounds.
class CopyJob final : public ChunkedJob {
 public:
  /// Source and target are rows of `bytes` bytes. Bounded rows are one int64 each.
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

/// Draws a picture of each of some slots; one slot is one chunk.
class DrawJob final : public ChunkedJob {
 public:
  /// `pixels`: memory for one picture of the kernel's size per slot.
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
