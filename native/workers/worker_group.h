// The caller's side of a pool with workers: posts tasks, steps its own share, and gathers results.
//
// Slots [0, num_worker_slots) belong to the workers, in contiguous shares; the others are the
// caller's own. The results of a round, a step of every slot, lie in a bank that the workers can
// see; the results of slots that were sent separately lie in the first bank, the inbox.
#pragma once

#include <deque>

#include "../slots/slot_ledger.h"
#include "../stepper/stepper.h"
#include "entry.h"

namespace shoal {

class WorkerGroup {
 public:
  /// `own` steps the caller's slots; None if there are none. With `copy`, batches are the user's to
  /// keep; otherwise the batch of a round is the bank itself. `shares` are the sizes of the
  /// workers' shares.
  WorkerGroup(nb::handle board, const Tree& tree, nb::handle actions, nb::handle own,
              nb::list banks, Py_ssize_t slots, std::vector<Py_ssize_t> shares, bool copy);

  /// Which slots are in flight and which are done.
  SlotLedger& ledger() { return ledger_; }

  // A round. Its state is kept here, and every call either does all of its work or nothing, so an
  // interrupt may arrive between any two calls.

  /// Checks actions for every slot and posts the round to all workers. Returns false, with the
  /// actions accepted and nothing posted, if some actions must travel as messages.
  bool start_round(nb::handle actions, Py_ssize_t bank);
  /// Opens a round whose tasks travel as messages.
  void open_round(Py_ssize_t bank);
  /// Steps the caller's share of the round; returns its Stepper::StepEvents.
  nb::object drive_own();
  /// How many slots of the workers have not finished the round yet.
  Py_ssize_t round_missing() const { return round_missing_; }
  bool round_awaits(int worker) const { return !round_taken_[static_cast<size_t>(worker)]; }
  /// Waits at most `seconds` for all workers, taking their outcomes as they arrive; returns whether
  /// all have finished.
  bool await_round(double seconds);
  /// The workers that have finished and announced a message about their share.
  nb::list round_messages() const;
  /// Makes the round wait for a worker again whose message was lost with its process.
  void redo(int worker);
  /// Ends the round; returns its observations, rewards, terminated and truncated.
  nb::object close_round();

  // Slots that are sent separately.

  /// Checks actions for these slots, which must be idle, marks them in flight, and posts a task for
  /// each. Returns false, with the actions accepted and nothing else done, if some actions must
  /// travel as messages.
  bool send(nb::handle actions, nb::handle slots);
  /// Posts a step of each of these slots, which are in flight.
  void post_steps(nb::handle slots);
  /// Queues resets of slots of the caller, which are in flight, with a seed or None for each.
  void queue_own_resets(nb::handle slots, nb::list seeds, nb::handle options);
  /// Announces a message to a worker and wakes it; returns false if the worker's lane is full.
  bool announce_message(int worker);

  /// Takes outcomes from the board: their slots become done, unless a message follows.
  void collect_done();
  /// The worker and the slot of the next announced message; None if there is none.
  nb::object next_announced() const;
  /// Marks the slot of `next_announced` done.
  void finish_announced();
  /// The slot of the caller to drive next; None if there is none.
  nb::object next_own() const;
  /// Steps or resets the slot of `next_own` and returns its Stepper::StepEvents; the slot is done
  /// then, also if this raises.
  nb::object drive_next();
  /// Waits at most `seconds` until workers have finished slots that may be wanted; returns whether
  /// they have.
  bool wait(const SlotLedger::Wanted& wanted, double seconds);
  /// The results of these slots, as a batch: in `bank`, or in arrays of the user.
  nb::object gather(nb::handle slots, Bank* bank);

  /// The newest observations of these slots, as a batch: in `bank`, or in arrays of the user.
  nb::object latest(nb::handle slots, Bank* bank);

  /// Corrects the count of finished slots after a worker was lost while it counted; only while
  /// nothing is in flight.
  void correct_count() { board_.correct_count(); }
  /// Discards the outcomes of a worker that was lost.
  void clear(int worker);

  int traverse(visitproc visit, void* arg) const;

 private:
  struct OwnTask {
    Py_ssize_t slot;
    bool is_reset;
    Ref seed, options;
  };
  struct Announcement {
    int worker;
    Py_ssize_t slot;
  };

  Bank& bank(Py_ssize_t number) const;
  Bank& target(Bank* bank, Py_ssize_t rows) {
    return bank != nullptr ? *bank : batch_banks_.renewed(tree_, rows);
  }
  void prepare_round(Py_ssize_t bank);
  void post(int worker, Entry task);
  void post_steps(const Slots& slots);
  void take_round();
  void copy_share(size_t worker);
  void copy_rows(const Bank& from, Py_ssize_t row, Bank& to, Py_ssize_t to_row, Py_ssize_t count,
                 bool results) const;
  nb::object batch_of(Bank& filled, Py_ssize_t rows) const;

  Ref board_owner_, actions_owner_, own_owner_, banks_;
  Board& board_;
  const Tree& tree_;
  ActionIntake& actions_;
  Stepper* own_;
  std::vector<Py_ssize_t> shares_, firsts_;  // by worker: how many slots, and the first of them
  std::vector<int> owners_;                  // by slot of the workers
  Py_ssize_t slots_, num_worker_slots_;
  bool copy_;
  SlotLedger ledger_;
  std::deque<OwnTask> own_tasks_;
  std::deque<Announcement> announced_;
  UserBanks batch_banks_;
  // Separate, since other batches may be requested in the middle of a round.
  UserBanks round_banks_;
  Bank* round_target_ = nullptr;
  Py_ssize_t round_bank_ = 0;
  Py_ssize_t round_missing_ = 0;
  std::vector<uint8_t> round_taken_, round_messages_;  // by worker
  std::vector<uint8_t> newest_;   // by slot: the bank that holds its newest row
  std::vector<uint8_t> has_row_;  // by slot: whether there is such a row
};

}  // namespace shoal
