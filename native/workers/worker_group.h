// The caller's side of a group: hands out work, drives a share itself, and gathers the results.
//
// Slots [0, num_worker_slots) are the workers', in contiguous shares; the others are the caller's
// own. A round is a step of every slot. Results of a round lie in the rows of a bank that the
// workers can see; results of slots that were sent one by one lie in the first bank.
#pragma once

#include "../stepper/stepper.h"
#include "entry.h"

namespace shoal {

class WorkerGroup {
 public:
  /// `own` steps the caller's slots; None if there are none. With `copy`, batches are the user's to
  /// keep; else a round's batch is the bank itself.
  /// `shares` are the sizes of the workers' shares.
  WorkerGroup(nb::handle board, const Tree& tree, nb::handle actions, nb::handle own,
              nb::list banks, Py_ssize_t slots, std::vector<Py_ssize_t> shares, bool copy);

  // A round. Where it stands is kept here, and every call either does its part of it or does not:
  // an interrupt may come between any two of them.

  /// Checks actions for every slot and sets the workers to work. Returns false, with the actions
  /// accepted and nobody at work, if some of them must travel as messages.
  bool start_round(nb::handle actions, Py_ssize_t bank);
  /// The same without the actions, for a round whose tasks travel as messages.
  void open_round(Py_ssize_t bank);
  bool round_is_open() const { return round_open_; }
  /// Steps the caller's share of the round; returns what it has to tell (Stepper::StepEvents).
  nb::object drive_own();
  /// How many slots of the workers are still to be taken.
  Py_ssize_t round_missing() const { return round_missing_; }
  bool round_awaits(int worker) const { return !round_taken_[static_cast<size_t>(worker)]; }
  /// Waits until all outcomes are there and takes them, as they come; false after so many seconds.
  bool await_round(double seconds);
  /// The workers whose outcome was taken and whose mail tells more.
  nb::list round_mail() const;
  /// A worker's mail was lost: its share is being done again.
  void redo(int worker);
  /// Closes the round; returns its observations, rewards, terminated and truncated.
  nb::object close_round();

  /// Leaves word that a slot is to be stepped, or (slot < 0) that there is mail.
  void post(int worker, Py_ssize_t slot);
  /// Wakes one worker, or all (-1).
  void ring(int worker) { board_.ring(worker); }
  /// Waits until so many slots are finished and not taken, at most so long; returns whether.
  bool wait(Py_ssize_t slots, double seconds);
  /// Takes outcomes of slots that were sent one by one: [(worker, slot, has mail), ...].
  nb::list take();
  /// Steps a slot of the caller's, or resets it where there is a list of a seed, in the first bank;
  /// returns what it has to tell.
  nb::object drive(Py_ssize_t slot, nb::handle seeds, nb::handle options);
  /// What the first bank has of these slots, as a batch: into `bank`, or the user's to keep.
  nb::object gather(nb::handle slots, Bank* bank);

  /// The newest observations of these slots, as a batch: into `bank`, or the user's to keep.
  nb::object latest(nb::handle slots, Bank* bank);

  /// Makes up for a worker that was lost while it told of its work; only while nobody is at work.
  void settle() { board_.settle(); }
  /// Forgets what a worker that is no more has left on the board.
  void clear(int worker) { board_.clear(worker); }

  int traverse(visitproc visit, void* arg) const;

 private:
  Bank& bank(Py_ssize_t number) const;
  Bank& target(Bank* bank, Py_ssize_t rows) {
    return bank != nullptr ? *bank : batch_banks_.renewed(tree_, rows);
  }
  void prepare_round(Py_ssize_t bank);
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
  Py_ssize_t slots_, num_worker_slots_;
  bool copy_;
  UserBanks batch_banks_;
  // On their own, since other batches may be asked for in the middle of a round.
  UserBanks round_banks_;
  Bank* round_target_ = nullptr;
  Py_ssize_t round_bank_ = 0;
  bool round_open_ = false;
  Py_ssize_t round_missing_ = 0;
  std::vector<uint8_t> round_taken_, round_mail_;  // by worker
  std::vector<uint8_t> newest_;                    // by slot: the bank that holds its newest row
  std::vector<uint8_t> seen_;                      // by slot: whether there is such a row
};

}  // namespace shoal
