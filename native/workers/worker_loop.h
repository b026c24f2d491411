// A worker's side of a pool: executes the tasks on its lane of the board with a stepper.
//
// One thread of the worker is on duty: it takes tasks and drives one slot after the other. If the
// environment of a slot that was sent separately blocks while other slots could be stepped, a
// stand-in thread takes over the duty. The blocked thread finishes its slot, finds that it is no
// longer on duty, and ends. Rounds and resets are never taken over: the caller waits for the last
// slot anyway, and some environments must be called from the thread that created them. The GIL is
// held throughout, except while a thread waits.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "../stepper/stepper.h"
#include "entry.h"

namespace shoal {

class WorkerLoop {
 public:
  /// The worker with this number drives the slots [first, last). `start_times` is None, or a column
  /// for the time at which each slot was started (seconds of the monotonic clock; 0: idle).
  WorkerLoop(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks,
             nb::handle start_times, int worker, Py_ssize_t first, Py_ssize_t last);

  /// Works until Python must act, and returns why: None if there is a message to read, False if a
  /// stand-in has taken over `duty`, or (slot or None for the share, number of the bank, events)
  /// for an outcome that does not fit on the board.
  nb::object serve(uint64_t duty);

  /// Queues steps of these slots, or resets if there are seeds. Outcomes are reported slot by slot,
  /// or all at once if the slots are None, which stands for the whole share.
  void add(nb::handle slots, Py_ssize_t bank, nb::handle seeds, nb::handle options, bool extras);

  /// Steps one slot at once, or resets it if there is a list with a seed; returns its events.
  nb::object drive(Py_ssize_t slot, Py_ssize_t bank, nb::handle seeds);

  /// Reports a slot (None: the share) as finished; `has_message` if a message follows.
  void finish(nb::handle slot, bool has_message);

  /// Waits until the thread on duty is blocked by an environment while there is other work, and
  /// takes over: returns the new duty, or 0 once `dismiss` was called.
  uint64_t stand_by();
  void dismiss() { dismissed_.store(true); }

  /// Waits until no thread is stepping any of these slots (None: the share).
  void wait_until_idle(nb::handle slots);

  int traverse(visitproc visit, void* arg) const;

 private:
  struct Work;

  void start(Py_ssize_t slot);
  void end(Py_ssize_t slot);
  bool find_work();
  void fill(Py_ssize_t bank, Py_ssize_t slot, const Ref& seed, const Ref& options,
            Stepper::StepEvents& events);
  nb::object work_on(std::shared_ptr<Work> work, uint64_t duty);
  Slots chosen(nb::handle slots) const {
    return slots.is_none() ? share_ : read_slots(slots, share_.first + share_.count);
  }

  Ref board_owner_, stepper_owner_, actions_owner_, bank_list_;
  Board& board_;
  Stepper& stepper_;
  ActionIntake& actions_;
  std::vector<Bank*> banks_;
  Column<double> start_times_;  // without data if start times are not recorded
  int worker_;
  Slots share_;
  bool has_objects_;
  std::deque<std::shared_ptr<Work>> queue_;  // with slots that were not started
  std::vector<uint8_t> active_;  // by slot of the share: whether a thread is stepping it

  // Read by stand-ins without the GIL.
  std::atomic<uint64_t> duty_{1};
  std::atomic<bool> dismissed_{false};
  std::atomic<bool> in_environment_{false};  // whether the duty may be taken over right now
  std::atomic<bool> in_use_{false};  // whether slots were sent separately since the last check
  std::atomic<bool> more_{false};    // whether the queue has slots that were not started
};

}  // namespace shoal
