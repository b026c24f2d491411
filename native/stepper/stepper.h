// Steps slots of Python environments, for all pools of Python environments.
//
// Implements autoreset, validation of the environments' results, episode statistics and collection
// of infos. The GIL is held, but environments may release it; SlotsInUse refuses concurrent calls.
#pragma once

#include "intake.h"
#include "latest.h"

namespace shoal {

class Stepper {
 public:
  /// `deep`: whether objects in observations are copied instead of shared with the environment.
  /// `remembers`: whether the newest observation of each slot is kept for `latest`.
  Stepper(const Tree& tree, nb::handle actions, SlotState& state, nb::list envs, Autoreset mode,
          bool statistics, bool deep, bool remembers);

  /// Carries out `work` and returns (observations, rewards, terminated, truncated, infos).
  ///
  /// `work` is None for a step of every slot, or a list of (slots, seeds, options): a step if seeds
  /// is None, otherwise a reset. Rows are in the order of the work. Without a bank the caller owns
  /// the arrays. Infos are None if there are none, otherwise (list of (row, info), episodes), where
  /// episodes is None or (mask, returns, lengths, times).
  nb::object run(nb::handle work, Bank* bank);

  /// Checks the actions of every slot, and steps all slots.
  nb::object step(nb::handle actions, Bank* bank);

  /// Events of slots that are not part of their rows.
  struct StepEvents {
    Ref events;    // list of (slot, info)
    Ref episodes;  // list of (slot, return, length, seconds) of those that ended
    Ref errors;    // list of (slot, exception)

    bool nothing() const { return !events && !episodes && !errors; }
    /// A tuple of the three lists, with None for an empty one; None if all are empty.
    Ref as_tuple() const;
  };

  /// Steps a slot if `seed` is null, otherwise resets it (with a seed or None), and fills the row
  /// of its number. An Exception of the environment is added to the events; others, such as
  /// KeyboardInterrupt, are forwarded to the caller. Several threads may call this concurrently for
  /// different slots.
  void fill(Bank& bank, Py_ssize_t slot, PyObject* seed, PyObject* options,
            StepEvents& step_events);

  /// Writes a slot's newest observation to a row; returns false if there is none.
  bool write_latest(Py_ssize_t slot, Columns& columns, Py_ssize_t row) const {
    return latest_.write(slot, columns, row, deep_);
  }

  /// Returns the newest observation of each of these slots as a batch, without stepping.
  nb::object latest(nb::handle slots, Bank* bank);

  /// Returns the newest observation of each slot, or None, for pickling.
  nb::list memory() const { return latest_.save(); }
  void remember(nb::list observations);

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Output;

  void step_slot(Py_ssize_t slot, Py_ssize_t row, Output& out);
  void reset_slot(Py_ssize_t slot, Py_ssize_t row, PyObject* seed, PyObject* options, Output& out);
  void autoreset(Py_ssize_t slot, Py_ssize_t row, Output& out);
  void begin_episode(Py_ssize_t slot, Py_ssize_t row, Ref result, Output& out);
  void finish_episode(Py_ssize_t slot, Py_ssize_t row, Output& out);
  void add_slot_notes(nb::python_error& error, Py_ssize_t slot, const char* method) const;
  void observe(Py_ssize_t slot, Py_ssize_t row, PyObject* observation, Output& out);
  template <class Act>
  void drive(const Slots& slots, Py_ssize_t first, const char* method, Output& out, const Act& act);
  Ref environment(Py_ssize_t slot) const;
  Bank& renewed(Bank* bank, Py_ssize_t rows);

  const Tree& tree_;
  Ref actions_owner_;  // for the garbage collector, which does not see nanobind's keep_alive
  ActionIntake& actions_;
  SlotState& state_;
  Ref envs_;
  Autoreset mode_;
  bool statistics_;
  bool deep_;
  UserBanks user_banks_;
  LatestObservations latest_;
  std::vector<uint8_t> was_reset_;  // by slot, for a hint if the first step fails
  Ref step_name_, reset_name_, seed_keyword_, reset_keywords_, final_obs_, final_info_;
};

}  // namespace shoal
