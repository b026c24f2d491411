#include "worker_group.h"

#include <cstring>
#include <numeric>

namespace shoal {

WorkerGroup::WorkerGroup(nb::handle board, const Tree& tree, nb::handle actions, nb::handle own,
                         nb::list banks, Py_ssize_t slots, std::vector<Py_ssize_t> shares,
                         bool copy)
    : board_owner_(Ref::borrow(board.ptr())),
      actions_owner_(Ref::borrow(actions.ptr())),
      own_owner_(Ref::borrow(own.ptr())),
      banks_(Ref::borrow(banks.ptr())),
      board_(nb::cast<Board&>(board)),
      tree_(tree),
      actions_(nb::cast<ActionIntake&>(actions)),
      own_(own.is_none() ? nullptr : &nb::cast<Stepper&>(own)),
      shares_(std::move(shares)),
      slots_(slots),
      num_worker_slots_(std::accumulate(shares_.begin(), shares_.end(), Py_ssize_t{0})),
      copy_(copy),
      newest_(static_cast<size_t>(slots)),
      seen_(static_cast<size_t>(slots)) {
  Py_ssize_t first = 0;
  for (const Py_ssize_t share : shares_) {
    firsts_.push_back(first);
    first += share;
  }
}

Bank& WorkerGroup::bank(Py_ssize_t number) const {
  Ref found = Ref::checked(PySequence_GetItem(banks_.get(), number));
  return nb::cast<Bank&>(nb::handle(found.get()));
}

bool WorkerGroup::start_round(nb::handle actions, Py_ssize_t number) {
  actions_.accept(actions, nb::none());
  if (has_extras(actions_.columns(), {nullptr, num_worker_slots_, 0})) return false;
  prepare_round(number);
  const Entry task = entry_of(Kind::kShare, static_cast<Entry>(number));
  for (int worker = 0; worker < board_.workers(); ++worker) {
    if (!board_.post(worker, task)) raise(PyExc_RuntimeError, "worker %d takes no tasks", worker);
  }
  board_.ring(kEveryone);
  return true;
}

void WorkerGroup::open_round(Py_ssize_t number) { prepare_round(number); }

void WorkerGroup::prepare_round(Py_ssize_t number) {
  round_bank_ = number;
  round_target_ = copy_ ? &round_banks_.renewed(tree_, slots_) : &bank(number);
  round_missing_ = num_worker_slots_;
  round_taken_.assign(shares_.size(), 0);
  round_mail_.assign(shares_.size(), 0);
  round_open_ = true;
}

nb::object WorkerGroup::drive_own() {
  Stepper::StepEvents told;
  for (Py_ssize_t slot = num_worker_slots_; slot < slots_; ++slot) {
    own_->fill(*round_target_, slot, nullptr, nullptr, told);
  }
  return nb::steal(told.as_tuple().release());
}

bool WorkerGroup::await_round(double seconds) {
  const int64_t deadline = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  for (;;) {
    take_round();
    if (round_missing_ == 0) return true;
    const int64_t left = deadline - monotonic_ns();
    if (left <= 0) return false;
    // What is there can be copied while others are at work.
    const Py_ssize_t wanted = copy_ ? 1 : round_missing_;
    if (board_.finished() >= wanted) continue;
    const nb::gil_scoped_release released;
    board_.wait(wanted, left);
  }
}

/// Takes the outcomes that are there.
void WorkerGroup::take_round() {
  for (int worker = 0; worker < board_.workers(); ++worker) {
    Entry outcome;
    if (!board_.take(worker, outcome)) continue;
    const auto index = static_cast<size_t>(worker);
    board_.took(worker, static_cast<uint32_t>(shares_[index]));
    round_missing_ -= shares_[index];
    round_taken_[index] = 1;
    round_mail_[index] = (outcome & kHasMail) != 0;
    if (copy_ && tree_.objects.empty()) copy_share(index);
  }
}

void WorkerGroup::copy_share(size_t worker) {
  const Py_ssize_t first = firsts_[worker];
  copy_rows(bank(round_bank_), first, *round_target_, first, shares_[worker], true);
}

nb::list WorkerGroup::round_mail() const {
  nb::list workers;
  for (size_t worker = 0; worker < round_mail_.size(); ++worker) {
    if (round_mail_[worker]) workers.append(worker);
  }
  return workers;
}

void WorkerGroup::redo(int worker) {
  const auto index = static_cast<size_t>(worker);
  round_taken_[index] = round_mail_[index] = 0;
  round_missing_ += shares_[index];
}

nb::object WorkerGroup::close_round() {
  // Objects come by mail, which is read after all.
  if (copy_ && !tree_.objects.empty()) {
    for (size_t worker = 0; worker < shares_.size(); ++worker) copy_share(worker);
  }
  std::fill_n(newest_.begin(), num_worker_slots_, static_cast<uint8_t>(round_bank_));
  std::fill_n(seen_.begin(), num_worker_slots_, uint8_t{1});
  round_open_ = false;
  return batch_of(*round_target_, slots_);
}

nb::object WorkerGroup::batch_of(Bank& filled, Py_ssize_t rows) const {
  Ref batch = Ref::checked(PyTuple_New(4));
  PyTuple_SET_ITEM(batch.get(), 0, assemble(tree_, filled.observations, rows).release());
  PyTuple_SET_ITEM(batch.get(), 1, filled.rewards.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 2, filled.terminated.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 3, filled.truncated.head(rows, filled.rows).release());
  return nb::steal(batch.release());
}

void WorkerGroup::copy_rows(const Bank& from, Py_ssize_t row, Bank& to, Py_ssize_t to_row,
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

void WorkerGroup::post(int worker, Py_ssize_t slot) {
  const Entry task =
      slot < 0 ? entry_of(Kind::kMail, 0) : entry_of(Kind::kSlot, static_cast<Entry>(slot));
  if (!board_.post(worker, task)) raise(PyExc_RuntimeError, "worker %d takes no tasks", worker);
}

bool WorkerGroup::wait(Py_ssize_t slots, double seconds) {
  if (board_.finished() >= slots) return true;
  const nb::gil_scoped_release released;
  return board_.wait(slots, static_cast<int64_t>(seconds * 1e9));
}

nb::list WorkerGroup::take() {
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

nb::object WorkerGroup::drive(Py_ssize_t slot, nb::handle seeds, nb::handle options) {
  Stepper::StepEvents told;
  Ref seed;
  if (!seeds.is_none()) seed = Ref::checked(PySequence_GetItem(seeds.ptr(), 0));
  own_->fill(bank(0), slot, seed.get(), options.ptr(), told);
  return nb::steal(told.as_tuple().release());
}

nb::object WorkerGroup::gather(nb::handle slots, Bank* into) {
  const Slots chosen = read_slots(slots, slots_);
  Bank& filled = target(into, chosen.count);
  const Bank& from = bank(0);
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    copy_rows(from, chosen[row], filled, row, 1, true);
  }
  return batch_of(filled, chosen.count);
}

nb::object WorkerGroup::latest(nb::handle slots, Bank* into) {
  const Slots chosen = read_slots(slots, slots_);
  Bank& filled = target(into, chosen.count);
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    const Py_ssize_t slot = chosen[row];
    const bool is_own = slot >= num_worker_slots_;
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

int WorkerGroup::traverse(visitproc visit, void* arg) const {
  Py_VISIT(board_owner_.get());
  Py_VISIT(actions_owner_.get());
  Py_VISIT(own_owner_.get());
  Py_VISIT(banks_.get());
  if (const int stop = batch_banks_.traverse(visit, arg)) return stop;
  return round_banks_.traverse(visit, arg);
}

}  // namespace shoal
