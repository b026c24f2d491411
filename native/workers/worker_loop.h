// A worker's side of a group: does what stands on the board, with a stepper.
//
// One thread of the worker is on duty: it takes tasks and works on one slot after the other. If the
// environment of a slot that was sent by itself keeps it waiting while other slots could go on, a
// stand-in takes over the duty; the thread that was kept waiting finishes its slot, finds itself
// relieved, and leaves. (Rounds and resets are never left: everybody waits for the last of them
// anyway, and some environments are particular about the thread they are called from.) All of this
// happens with the GIL held, except for the waiting itself.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "../stepper/stepper.h"
#include "entry.h"

namespace shoal {

class WorkerLoop {
 public:
  /// The worker with this number drives the slots [first, last). `begun` is None, or a column in
  /// which it notes since when each slot is being worked on (seconds of the monotonic clock; 0:
  /// not).
  WorkerLoop(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks,
             nb::handle begun, int worker, Py_ssize_t first, Py_ssize_t last);

  /// Works until there is something for Python to do, and returns that: None for a message to read,
  /// False if `duty` is over because a stand-in has taken it, or (slot or None for the share,
  /// number of the bank, told) for an outcome of which the board can only tell a part.
  nb::object serve(uint64_t duty);

  /// Adds work: steps of these slots, or resets where there are seeds. Outcomes are told slot by
  /// slot, or, if the slots are None for the whole share, at once.
  void add(nb::handle slots, Py_ssize_t bank, nb::handle seeds, nb::handle options, bool extras);

  /// Steps one slot, or resets it where there is a list of a seed, here and now; returns what it
  /// has to tell.
  nb::object drive(Py_ssize_t slot, Py_ssize_t bank, nb::handle seeds);

  /// Tells the caller that a slot (None: the share) is done; `has_mail` if a message follows.
  void finish(nb::handle slot, bool has_mail);

  /// Waits until the thread on duty is kept waiting by an environment while there is other work,
  /// and takes over: the new duty. Or 0, once `dismiss` was called.
  uint64_t stand_by();
  void dismiss() { dismissed_.store(true); }

  /// Waits until no thread is at work on any of these slots (None: the share).
  void wait_until_idle(nb::handle slots);

  int traverse(visitproc visit, void* arg) const;

 private:
  struct Job;

  void begin(Py_ssize_t slot);
  void end(Py_ssize_t slot);
  bool find_work();
  nb::object work_on(std::shared_ptr<Job> job, uint64_t duty);
  Slots chosen(nb::handle slots) const {
    return slots.is_none() ? share_ : read_slots(slots, share_.first + share_.count);
  }

  Ref board_owner_, stepper_owner_, actions_owner_, bank_list_;
  Board& board_;
  Stepper& stepper_;
  ActionIntake& actions_;
  std::vector<Bank*> banks_;
  Column<double> begun_;  // without data where nobody wants to know
  int worker_;
  Slots share_;
  bool has_objects_;
  std::deque<std::shared_ptr<Job>> jobs_;  // with slots that nobody has begun with
  std::vector<uint8_t> active_;  // by slot of the share: whether a thread is at work on it

  // Read without the GIL by who stands by.
  std::atomic<uint64_t> duty_{1};
  std::atomic<bool> dismissed_{false};
  std::atomic<bool> in_environment_{false};  // whether the thread on duty is, and may be left there
  std::atomic<bool> in_use_{false};          // whether there have been slots that may be left
  std::atomic<bool> more_{false};            // whether there are slots that nobody has begun with
};

}  // namespace shoal
