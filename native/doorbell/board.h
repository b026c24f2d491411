// The board: where a caller leaves work for its workers, and they leave word of what is done.
//
// It lies in memory that all of them share. Each worker has a lane, two rings with one writer and
// one reader each: tasks to the worker, outcomes to the caller. All workers wait at one bell, so
// one ring wakes them all; the caller waits at another, which is rung by whoever finishes the last
// slot that the caller asked for.
#pragma once

#include <cstddef>

#include "bell.h"

namespace shoal {

/// A task or an outcome: what kind, and which slot or bank.
using Entry = uint32_t;

class Board {
 public:
  /// How much memory a board needs; it must start out as zeros.
  static size_t bytes(int workers, uint32_t capacity);

  /// `capacity` is the length of the rings, a power of two.
  Board(void* memory, int workers, uint32_t capacity, std::unique_ptr<Sleep> work_sleep,
        std::unique_ptr<Sleep> done_sleep, bool may_spin);

  int workers() const { return workers_; }

  // The caller's side.

  /// Leaves a task; false if the lane is full. Nobody hears of it before `ring`.
  bool post(int worker, Entry task);
  void ring(int who) { work_.ring(who); }
  /// How many slots are finished and not taken, of one worker or in all.
  int64_t finished(int worker) const {
    return lane(worker).finished.load() - taken_[static_cast<size_t>(worker)].slots;
  }
  int64_t finished() const;
  /// Waits until so many slots are finished and not taken, at most so long; returns whether they
  /// are. Returns early if a signal comes.
  bool wait(int64_t slots, int64_t nanoseconds);
  /// Takes an outcome; false if there is none. How many slots it stands for, the caller knows.
  bool take(int worker, Entry& outcome);
  void took(int worker, uint32_t slots) { taken_[static_cast<size_t>(worker)].slots += slots; }
  /// Empties the lane of a worker that is no more.
  void clear(int worker);
  /// Makes the workers' count agree with what was taken, if a worker was lost in the middle of
  /// counting. Only while nothing is under way.
  void settle();
  /// How many slots a worker has begun with, and the latest of them.
  uint32_t begun(int worker) const { return lane(worker).begun.load(std::memory_order_acquire); }
  uint32_t current(int worker) const {
    return lane(worker).current.load(std::memory_order_relaxed);
  }

  // A worker's side.

  /// Takes the next task; false if there is none.
  bool next(int worker, Entry& task);
  bool has_task(int worker) const {
    const Lane& own = lane(worker);
    return own.posted.load() != own.next.load();
  }
  /// Waits for a task, at most so long.
  void wait_for_task(int worker, int64_t nanoseconds);
  /// Says which slot is being worked on, for a caller who asks what takes so long.
  void begin(int worker, uint32_t slot) {
    Lane& own = lane(worker);
    own.current.store(slot, std::memory_order_relaxed);
    own.begun.store(own.begun.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Leaves an outcome that stands for so many slots.
  void finish(int worker, Entry outcome, uint32_t slots);

 private:
  struct Lane {
    alignas(64) Word posted{0};  // by the caller: tasks in all
    alignas(64) Word next{0};    // by the worker: tasks taken
    Word begun{0}, current{0};
    Word told{0};      // outcomes in all
    Word finished{0};  // slots that they stand for
    Word counted{0};   // of these, those that are in `completed`
    // Followed by the two rings.
  };
  struct Header {
    BellWords work, done;
    alignas(64) Word completed{0};  // by the workers: slots in all
    alignas(64) Word target{0};     // by the caller: ring when `completed` comes to this
  };
  /// What the caller has taken out of a lane.
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
  bool unsettled_ = false;  // whether `completed` may be wrong
};

}  // namespace shoal
