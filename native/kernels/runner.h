// Runs the slots of a kernel for Python: checks actions, steps on threads, and returns batches.
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
  /// truncated, infos). Infos are None or (columns, episodes, finals), each of which may be None: a
  /// dict of arrays; (mask, returns, lengths, seconds); (rows, observations, columns) of episodes
  /// that ended before their row was reset. Without a bank, the arrays belong to the caller.
  nb::object step(nb::handle actions, Bank* bank);

  /// Checks actions for these slots and starts to step them.
  void send(nb::handle actions, nb::handle slots);

  /// Starts a reset of these slots, with a seed or None for each.
  void send_reset(nb::handle slots, nb::list seeds, std::vector<double> options);

  /// Which slots are in flight and which are done.
  SlotLedger& ledger() { return ledger_; }

  /// Waits until these slots are done and returns them: (slots, observations, ..., infos), or None
  /// if that takes longer than `seconds`. A negative number means no limit.
  nb::object receive(const SlotLedger::Wanted& wanted, double seconds, Bank* bank);

  /// Waits for all slots in flight and discards their results.
  void drop();

  /// Returns the newest observation of each of these slots, as a batch.
  nb::object latest(nb::handle slots, Bank* bank);

  /// Returns images of these slots: an array of (count, height, width, 3) bytes.
  nb::object draw(nb::handle slots);

  /// Returns a row of bytes for each slot with its state, generator and episode; restores them.
  nb::object save(nb::handle slots);
  void restore(nb::handle slots, nb::handle rows);

  /// Returns a view of the states: a writable array of (slots, bytes of a state).
  nb::object states(nb::handle self);

  /// Returns a slot's generator as (state, increment, has_half, half), where the first two are
  /// pairs of the low and the high word; and its seed, given or drawn at random.
  nb::object random_state(int64_t slot);
  nb::object seed(int64_t slot) const;
  void set_seed(int64_t slot, nb::object seed);

  /// Gets all parameters of a slot, in the kernel's order, or sets one of them.
  std::vector<double> parameters(int64_t slot) const;
  void set_parameter(int64_t slot, size_t number, double value);

  /// The system's ids of the threads; 0 for one that was not started. Any thread may call this.
  std::vector<int> thread_ids() const { return team_.thread_ids(); }

  /// Stops the threads and waits for calls of other Python threads; returns false if one has not
  /// returned in time. The runner cannot be used afterwards.
  bool stop(double seconds);

 private:
  struct PendingJob {
    std::shared_ptr<SlotJob> job;
    int64_t collected = 0;  // chunks
  };

  void check_usable();
  void check_was_reset(const Slots& slots) const;
  void take_actions(nb::handle actions);
  /// Makes a job of these slots (empty: all) and starts the threads on it if it is long enough.
  std::shared_ptr<SlotJob> begin(std::vector<int64_t> slots, Rows rows,
                                 std::unique_ptr<SlotJob::Reset> reset, bool first_come);
  void record_cost(const SlotJob& job);
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
  std::vector<Ref> seeds_;         // Python integers
};

}  // namespace shoal
