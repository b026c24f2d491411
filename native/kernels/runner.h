// A vector of kernel slots as Python drives it: actions in, batches out, threads in between.
#pragma once

#include <array>
#include <deque>

#include "../slots/slot_ledger.h"
#include "../stepper/intake.h"
#include "../threads/team.h"
#include "jobs.h"
#include "kernel.h"

namespace shoal {

class KernelRunner {
 public:
  struct Options {
    Autoreset mode;
    bool statistics, check_nan;
    int64_t max_episode_steps;
    Generator generator;
    std::vector<double> parameters;
    int workers;
    std::vector<int> cores;
    bool may_spin;
  };

  KernelRunner(nb::handle kernel, nb::handle observations, nb::handle infos, nb::handle intake,
               nb::handle state, Options options);
  ~KernelRunner();

  /// Checks actions for every slot and steps them all. Returns (observations, rewards, terminated,
  /// truncated, infos); infos are None where there are none, else (columns, episodes, finals), each
  /// None or: a dict of arrays; (mask, returns, lengths, seconds); (rows, observations, columns) of
  /// episodes that ended before the row was reset. Without a bank the arrays are the caller's.
  nb::object step(nb::handle actions, Bank* bank);

  /// Checks actions for these slots and begins to step them.
  void send(nb::handle actions, nb::handle slots);

  /// Begins a reset of these slots, with a seed or None for each.
  void send_reset(nb::handle slots, nb::list seeds, std::vector<double> options);

  /// Which slots are in flight and which are done.
  SlotLedger& ledger() { return ledger_; }

  /// Waits until these slots are done and returns them: (slots, observations, ..., infos), or None
  /// if that takes longer than `seconds`; a negative number is no limit.
  nb::object receive(const SlotLedger::Wanted& wanted, double seconds, Bank* bank);

  /// Waits for everything in flight and forgets it.
  void drop();

  /// The newest observation of each of these slots, as a batch.
  nb::object latest(nb::handle slots, Bank* bank);

  /// Pictures of these slots: an array of (count, height, width, 3) bytes.
  nb::object draw(nb::handle slots);

  /// Everything about these slots, a row of bytes for each; and the way back.
  nb::object save(nb::handle slots);
  void restore(nb::handle slots, nb::handle rows);

  /// The states as bytes that can be written to: an array of (slots, bytes of a state).
  nb::object states(nb::handle self);

  /// A slot's generator as (state, increment, has_half, half), the first two as pairs of low and
  /// high word; and the seed that it was given, or got by chance.
  nb::object random_state(int64_t slot);
  nb::object seed(int64_t slot) const;
  void set_seed(int64_t slot, nb::object seed);

  /// The parameters of a slot, in the kernel's order; and one of them anew.
  std::vector<double> parameters(int64_t slot) const;
  void set_parameter(int64_t slot, size_t number, double value);

  /// The threads as the system knows them, 0 for one that has not been started. Any thread may ask.
  std::vector<int> thread_ids() const { return team_.thread_ids(); }

  /// Ends the threads, and waits for calls of other threads of Python's; false where one has not
  /// come back in time. Nothing can be done afterwards.
  bool stop(double seconds);

 private:
  struct PendingJob {
    std::shared_ptr<SlotJob> job;
    int64_t collected = 0;  // chunks
  };

  void check_usable();
  void check_was_reset(const Slots& slots) const;
  void take_actions(nb::handle actions);
  /// Makes a job of slots, all where there are none, and lets the threads begin where it is worth
  /// it.
  std::shared_ptr<SlotJob> begin(std::vector<int64_t> slots, Rows rows,
                                 std::unique_ptr<SlotJob::Reset> reset, bool first_come);
  void learn(const SlotJob& job);
  void finish(const std::shared_ptr<SlotJob>& job);
  void finish_interrupted();
  void make_progress(ChunkedJob& job, int64_t nanoseconds);
  void collect_done();
  void check_slot(int64_t slot) const;
  Seeds read_seeds(const Slots& slots, nb::list seeds);
  void raise_failure(const std::vector<Failure>& failures) const;
  Bank& renewed(Bank* bank, Py_ssize_t rows);
  Columns& renewed_infos(Py_ssize_t rows);
  Rows rows_of(const Bank& bank, const Columns& infos) const;
  void put_results(const Bank& bank, const Columns& infos, const Slots& slots, bool any_ended,
                   PyObject* tuple, Py_ssize_t place) const;
  Ref infos_of(const Bank& bank, const Columns& infos, const Slots& slots, bool any_ended) const;
  Ref episodes(const Bank& bank, const Slots& slots) const;
  Ref finals(const Bank& bank, const Slots& slots) const;

  Ref kernel_owner_, observations_owner_, infos_owner_, intake_owner_, state_owner_;
  const Tree& observations_;
  const Tree& infos_;
  ActionIntake& intake_;
  SlotState& state_;
  std::shared_ptr<Engine> engine_;
  Team team_;

  UserBanks user_banks_;
  std::array<Columns, 2> info_banks_;
  size_t info_turn_ = 0;

  bool stopped_ = false;
  SlotLedger ledger_;
  std::deque<PendingJob> pending_;
  std::vector<Failure> failures_;         // of slots that are done
  std::shared_ptr<SlotJob> interrupted_;  // a step whose caller was interrupted

  mutable bool all_were_reset_ = false;
  double step_cost_, reset_cost_;  // nanoseconds for a slot
  std::vector<Ref> seeds_;         // Python's integers
};

}  // namespace shoal
