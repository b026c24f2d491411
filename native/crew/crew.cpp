#include "crew.h"

#include <cstring>

namespace shoal {

Crew::Crew(nb::handle board, const Tree& tree, nb::handle actions, nb::handle own, nb::list banks,
           Py_ssize_t slots, Py_ssize_t remote, bool copy)
    : board_owner_(Ref::borrow(board.ptr())),
      actions_owner_(Ref::borrow(actions.ptr())),
      own_owner_(Ref::borrow(own.ptr())),
      banks_(Ref::borrow(banks.ptr())),
      board_(nb::cast<Board&>(board)),
      tree_(tree),
      actions_(nb::cast<ActionIntake&>(actions)),
      own_(own.is_none() ? nullptr : &nb::cast<Stepper&>(own)),
      slots_(slots),
      remote_(remote),
      copy_(copy),
      newest_(static_cast<size_t>(slots)),
      seen_(static_cast<size_t>(slots)) {}

Bank& Crew::bank(Py_ssize_t number) const {
  Ref found = Ref::checked(PySequence_GetItem(banks_.get(), number));
  return nb::cast<Bank&>(nb::handle(found.get()));
}

bool Crew::start_round(nb::handle actions, Py_ssize_t number) {
  round_started_ = false;
  actions_.accept(actions, nb::none());
  prepare_round(number);
  if (has_extras(actions_.columns(), {nullptr, remote_, 0})) return false;
  const Entry task = entry_of(Kind::kShare, static_cast<Entry>(number));
  for (int worker = 0; worker < board_.workers(); ++worker) {
    if (!board_.post(worker, task)) raise(PyExc_RuntimeError, "worker %d takes no tasks", worker);
  }
  round_started_ = true;
  board_.ring(kEveryone);
  return true;
}

void Crew::prepare_round(Py_ssize_t number) {
  round_bank_ = number;
  round_target_ = copy_ ? &round_banks_.renewed(tree_, slots_) : &bank(number);
}

nb::object Crew::drive_own() {
  Stepper::Told told;
  for (Py_ssize_t slot = remote_; slot < slots_; ++slot) {
    own_->fill(*round_target_, slot, nullptr, nullptr, told);
  }
  return nb::steal(told.as_tuple().release());
}

nb::list Crew::take_round() {
  nb::list with_mail;
  for (int worker = 0; worker < board_.workers(); ++worker) {
    Entry outcome;
    while (board_.take(worker, outcome)) {
      if (outcome & kHasMail) with_mail.append(worker);
    }
    board_.took_all(worker);
  }
  for (Py_ssize_t slot = 0; slot < remote_; ++slot) {
    newest_[static_cast<size_t>(slot)] = static_cast<uint8_t>(round_bank_);
    seen_[static_cast<size_t>(slot)] = 1;
  }
  return with_mail;
}

nb::object Crew::round_batch() {
  if (copy_) copy_rows(bank(round_bank_), 0, *round_target_, 0, remote_, true);
  return batch_of(*round_target_, slots_);
}

nb::object Crew::batch_of(Bank& filled, Py_ssize_t rows) const {
  Ref batch = Ref::checked(PyTuple_New(4));
  PyTuple_SET_ITEM(batch.get(), 0, assemble(tree_, filled.observations, rows).release());
  PyTuple_SET_ITEM(batch.get(), 1, filled.rewards.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 2, filled.terminated.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 3, filled.truncated.head(rows, filled.rows).release());
  return nb::steal(batch.release());
}

void Crew::copy_rows(const Bank& from, Py_ssize_t row, Bank& to, Py_ssize_t to_row,
                     Py_ssize_t count, bool results) const {
  for (size_t k = 0; k < tree_.leaves.size(); ++k) {
    std::memcpy(to.observations.row(tree_, k, to_row), from.observations.row(tree_, k, row),
                static_cast<size_t>(tree_.leaves[k].bytes * count));
  }
  for (size_t k = 0; k < tree_.objects.size(); ++k) {
    for (Py_ssize_t r = 0; r < count; ++r) {
      PyObject* value = PyList_GET_ITEM(from.observations.objects[k].get(), row + r);
      check(PyList_SetItem(to.observations.objects[k].get(), to_row + r, Py_NewRef(value)));
    }
  }
  if (!results) return;
  std::memcpy(&to.rewards[to_row], &from.rewards[row], sizeof(double) * static_cast<size_t>(count));
  std::memcpy(&to.terminated[to_row], &from.terminated[row], static_cast<size_t>(count));
  std::memcpy(&to.truncated[to_row], &from.truncated[row], static_cast<size_t>(count));
}

void Crew::post(int worker, Py_ssize_t slot) {
  const Entry task =
      slot < 0 ? entry_of(Kind::kMail, 0) : entry_of(Kind::kSlot, static_cast<Entry>(slot));
  if (!board_.post(worker, task)) raise(PyExc_RuntimeError, "worker %d takes no tasks", worker);
}

bool Crew::wait(Py_ssize_t slots, double seconds) {
  if (board_.finished() >= slots) return true;
  const nb::gil_scoped_release released;
  return board_.wait(slots, static_cast<int64_t>(seconds * 1e9));
}

nb::list Crew::take() {
  nb::list outcomes;
  for (int worker = 0; worker < board_.workers(); ++worker) {
    Entry outcome;
    while (board_.take(worker, outcome)) {
      board_.took(worker, 1);
      const auto slot = static_cast<size_t>(number_of(outcome));
      newest_[slot] = 0;
      seen_[slot] = 1;
      outcomes.append(nb::make_tuple(worker, slot, (outcome & kHasMail) != 0));
    }
  }
  return outcomes;
}

nb::object Crew::drive(Py_ssize_t slot, nb::handle seeds, nb::handle options) {
  Stepper::Told told;
  Ref seed;
  if (!seeds.is_none()) seed = Ref::checked(PySequence_GetItem(seeds.ptr(), 0));
  own_->fill(bank(0), slot, seed.get(), options.ptr(), told);
  return nb::steal(told.as_tuple().release());
}

nb::object Crew::gather(nb::handle slots, Bank* into) {
  const Slots chosen = read_slots(slots, slots_);
  Bank& filled = target(into, chosen.count);
  const Bank& from = bank(0);
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    copy_rows(from, chosen[row], filled, row, 1, true);
  }
  return batch_of(filled, chosen.count);
}

nb::object Crew::latest(nb::handle slots, Bank* into) {
  const Slots chosen = read_slots(slots, slots_);
  Bank& filled = target(into, chosen.count);
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    const Py_ssize_t slot = chosen[row];
    const bool is_own = slot >= remote_;
    if (is_own && own_->write_latest(slot, filled.observations, row)) continue;
    if (!is_own && seen_[static_cast<size_t>(slot)]) {
      copy_rows(bank(newest_[static_cast<size_t>(slot)]), slot, filled, row, 1, false);
      continue;
    }
    Ref error = error_class("ResetMaskError");
    raise(error.get(), "slot %zd has not been reset yet and has no observation", slot);
  }
  Ref batch = assemble(tree_, filled.observations, chosen.count);
  return nb::steal(batch.release());
}

int Crew::traverse(visitproc visit, void* arg) const {
  Py_VISIT(board_owner_.get());
  Py_VISIT(actions_owner_.get());
  Py_VISIT(own_owner_.get());
  Py_VISIT(banks_.get());
  if (const int stop = batch_banks_.traverse(visit, arg)) return stop;
  return round_banks_.traverse(visit, arg);
}

}  // namespace shoal
