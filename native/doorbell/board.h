// The board: passes tasks from a caller to its workers, and outcomes back.
//
// It lies in memory that all of them share. Each worker has a lane of two ring buffers with one
// writer and one reader each: tasks for the worker, and outcomes for the caller. All workers wait
// at one bell, so one ring wakes them all. The caller waits at another bell, which a worker rings
// when it finishes the last slot that the caller waits for.
#pragma once

#include <cstddef>

#include "bell.h"

namespace shoal {

/// A task or an outcome: its kind, and the number of a slot or bank.
using Entry = uint32_t;

class Board {
 public:
  /// The size of a board's memory, which must be zero-initialized.
  static size_t bytes(int workers, uint32_t capacity);

  /// `capacity` is the length of the ring buffers, a power of two.
  Board(void* memory, int workers, uint32_t capacity, std::unique_ptr<Sleep> work_sleep,
        std::unique_ptr<Sleep> done_sleep, bool may_spin);

  int workers() const { return workers_; }

  // The caller's side.

  /// Posts a task; returns false if the lane is full. A sleeping worker sees it after `ring`.
  bool post(int worker, Entry task);
  /// Wakes one worker, or all with `kEveryone`.
  void ring(int worker) { work_.ring(worker); }
  /// How many slots are finished and not taken, of one worker or of all. Negative for a moment if
  /// an outcome was taken before its worker has added its slots.
  int64_t finished(int worker) const {
    return static_cast<int32_t>(lane(worker).finished.load() -
                                taken_[static_cast<size_t>(worker)].slots);
  }
  int64_t finished() const;
  /// Waits at most `nanoseconds` until this many slots are finished and not taken; returns whether
  /// they are. Returns early if a signal arrives.
  bool wait(int64_t slots, int64_t nanoseconds);
  /// Takes an outcome; returns false if there is none. The caller then calls `add_taken`.
  bool take(int worker, Entry& outcome);
  /// Adds the number of slots that a taken outcome stands for.
  void add_taken(int worker, uint32_t slots) { taken_[static_cast<size_t>(worker)].slots += slots; }
  /// Empties the lane of a worker that was lost.
  void clear(int worker);
  /// Corrects the count of finished slots after a worker was lost inside `finish`. Only while
  /// nothing is in flight.
  void correct_count();
  /// How many slots a worker has started, and the last of them.
  uint32_t started(int worker) const {
    return lane(worker).started.load(std::memory_order_acquire);
  }
  uint32_t current(int worker) const {
    return lane(worker).current.load(std::memory_order_relaxed);
  }

  // A worker's side.

  /// Takes the next task; returns false if there is none.
  bool next(int worker, Entry& task);
  bool has_task(int worker) const {
    const Lane& own = lane(worker);
    return own.posted.load() != own.next.load();
  }
  /// Waits at most `nanoseconds` for a task.
  void wait_for_task(int worker, int64_t nanoseconds);
  /// Notes that the worker starts this slot, so that the caller can detect a hang.
  void start(int worker, uint32_t slot) {
    Lane& own = lane(worker);
    own.current.store(slot, std::memory_order_relaxed);
    own.started.store(own.started.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Reports an outcome that stands for this many slots.
  void finish(int worker, Entry outcome, uint32_t slots);

 private:
  struct Lane {
    alignas(64) Word posted{0};  // by the caller: number of tasks posted
    alignas(64) Word next{0};    // by the worker: number of tasks taken
    Word started{0}, current{0};
    Word reported{0};  // number of outcomes
    Word finished{0};  // number of slots that they stand for
    Word counted{0};   // the part of `finished` that was added to `completed`
    // Followed by the two ring buffers.
  };
  struct Header {
    BellWords work, done;
    alignas(64) Word completed{0};  // by the workers: number of slots finished
    alignas(64) Word target{0};     // by the caller: ring when `completed` reaches this
  };
  /// How much the caller has taken from a lane.
  struct Taken {
    uint32_t outcomes = 0;
    uint32_t slots = 0;
  };

  static size_t lane_bytes(uint32_t capacity);
  uint32_t slots_taken() const;
  Lane& lane(int worker) const;
  Entry* tasks(Lane& lane) const { return reinterpret_cast<Entry*>(&lane + 1); }
  Entry* outcomes(Lane& lane) const { return tasks(lane) + capacity_; }

  char* memory_;
  int workers_;
  uint32_t capacity_;
  Header& header_;
  Bell work_, done_;
  std::vector<Taken> taken_;
  bool may_be_miscounted_ = false;  // whether `completed` may be too low
};

}  // namespace shoal
