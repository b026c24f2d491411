// Drives slots of Python environments: the loop that every Python-environment pool shares.
//
// Autoreset, the checks of what an environment returns, episode statistics and the collecting of
// infos are written here and nowhere else. The GIL is held throughout; an environment may release
// it; Occupied keeps a second call out meanwhile.
#pragma once

#include "intake.h"
#include "latest.h"

namespace shoal {

class Stepper {
 public:
  /// `deep`: whether objects in observations are copied, or shared with the environment.
  /// `remembers`: whether the newest observation of each slot is kept, for `latest`.
  Stepper(const Tree& tree, nb::handle actions, SlotState& state, nb::list envs, Autoreset mode,
          bool statistics, bool deep, bool remembers);

  /// Does the queued work and returns (observations, rewards, terminated, truncated, infos).
  ///
  /// `work` is None for a step of every slot, or a list of (slots, seeds, options): a step where
  /// seeds is None, else a reset. Rows are filled in the order of the work. Without a bank the
  /// arrays are the caller's to keep. Infos are None where there are none, else
  /// (list of (row, info), episodes), where episodes is None or (mask, returns, lengths, times).
  nb::object run(nb::handle work, Bank* bank);

  /// Checks actions for every slot and steps them all: accept and run in one call.
  nb::object step(nb::handle actions, Bank* bank);

  /// What slots have to tell besides the rows that they fill.
  struct StepEvents {
    Ref events;    // list of (slot, info)
    Ref episodes;  // list of (slot, return, length, seconds) of those that ended
    Ref errors;    // list of (slot, exception)

    bool nothing() const { return !events && !episodes && !errors; }
    /// The three lists, None in place of one that is empty; or None alone for nothing at all.
    Ref as_tuple() const;
  };

  /// Steps one slot, or resets it where there is a seed (or Python's None), and fills the row of
  /// its number. What its environment raises is told like the rest, unless it is no error but a
  /// wish to stop, such as KeyboardInterrupt. Slots may be filled at the same time by several
  /// threads.
  void fill(Bank& bank, Py_ssize_t slot, PyObject* seed, PyObject* options, StepEvents& told);

  /// Writes a slot's newest observation to a row; false where there is none, or none is kept.
  bool write_latest(Py_ssize_t slot, Columns& columns, Py_ssize_t row) const {
    return latest_.write(slot, columns, row, deep_);
  }

  /// The latest observation of each of these slots, as a batch, without stepping.
  nb::object latest(nb::handle slots, Bank* bank);

  /// What `latest` works from: the newest observation by slot, or None. For pickling.
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
  Ref actions_owner_;  // shown to the garbage collector, which nanobind's keep_alive is not
  ActionIntake& actions_;
  SlotState& state_;
  Ref envs_;
  Autoreset mode_;
  bool statistics_;
  bool deep_;
  UserBanks user_banks_;
  LatestObservations latest_;
  std::vector<uint8_t> was_reset_;  // by slot; tells why the first step may have failed
  Ref step_name_, reset_name_, seed_keyword_, reset_keywords_, final_obs_, final_info_;
};

}  // namespace shoal
