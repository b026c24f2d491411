#include "worker_group.h"

#include <algorithm>
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
      ledger_(slots),
      newest_(static_cast<size_t>(slots)),
      has_row_(static_cast<size_t>(slots)) {
  for (size_t worker = 0; worker < shares_.size(); ++worker) {
    firsts_.push_back(static_cast<Py_ssize_t>(owners_.size()));
    owners_.insert(owners_.end(), static_cast<size_t>(shares_[worker]), static_cast<int>(worker));
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
  for (int worker = 0; worker < board_.workers(); ++worker) post(worker, task);
  board_.ring(kEveryone);
  return true;
}

void WorkerGroup::open_round(Py_ssize_t number) { prepare_round(number); }

void WorkerGroup::prepare_round(Py_ssize_t number) {
  round_bank_ = number;
  round_target_ = copy_ ? &round_banks_.renewed(tree_, slots_) : &bank(number);
  round_missing_ = num_worker_slots_;
  round_taken_.assign(shares_.size(), 0);
  round_messages_.assign(shares_.size(), 0);
  ledger_.begin_round();
}

nb::object WorkerGroup::drive_own() {
  Stepper::StepEvents events;
  for (Py_ssize_t slot = num_worker_slots_; slot < slots_; ++slot) {
    own_->fill(*round_target_, slot, nullptr, nullptr, events);
  }
  return nb::steal(events.as_tuple().release());
}

bool WorkerGroup::await_round(double seconds) {
  const int64_t deadline = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  for (;;) {
    take_round();
    if (round_missing_ == 0) return true;
    const int64_t remaining = deadline - monotonic_ns();
    if (remaining <= 0) return false;
    // Shares that are finished are copied while other workers are still stepping.
    const Py_ssize_t wanted = copy_ ? 1 : round_missing_;
    if (board_.finished() >= wanted) continue;
    const nb::gil_scoped_release released;
    board_.wait(wanted, remaining);
  }
}

void WorkerGroup::take_round() {
  for (int worker = 0; worker < board_.workers(); ++worker) {
    Entry outcome;
    if (!board_.take(worker, outcome)) continue;
    const auto index = static_cast<size_t>(worker);
    board_.add_taken(worker, static_cast<uint32_t>(shares_[index]));
    round_missing_ -= shares_[index];
    round_taken_[index] = 1;
    round_messages_[index] = (outcome & kHasMessage) != 0;
    if (copy_ && tree_.objects.empty()) copy_share(index);
  }
}

void WorkerGroup::copy_share(size_t worker) {
  const Py_ssize_t first = firsts_[worker];
  copy_rows(bank(round_bank_), first, *round_target_, first, shares_[worker], true);
}

nb::list WorkerGroup::round_messages() const {
  nb::list workers;
  for (size_t worker = 0; worker < round_messages_.size(); ++worker) {
    if (round_messages_[worker]) workers.append(worker);
  }
  return workers;
}

void WorkerGroup::redo(int worker) {
  const auto index = static_cast<size_t>(worker);
  round_taken_[index] = round_messages_[index] = 0;
  round_missing_ += shares_[index];
}

nb::object WorkerGroup::close_round() {
  // Objects arrive in messages, which were read after the shares had been taken.
  if (copy_ && !tree_.objects.empty()) {
    for (size_t worker = 0; worker < shares_.size(); ++worker) copy_share(worker);
  }
  std::fill_n(newest_.begin(), num_worker_slots_, static_cast<uint8_t>(round_bank_));
  std::fill_n(has_row_.begin(), num_worker_slots_, uint8_t{1});
  ledger_.end_round();
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

void WorkerGroup::post(int worker, Entry task) {
  if (!board_.post(worker, task)) {
    raise(PyExc_RuntimeError, "the task queue of worker %d is full", worker);
  }
}

bool WorkerGroup::send(nb::handle actions, nb::handle slots) {
  const Slots chosen = read_slots(slots, slots_);
  ledger_.check_idle(chosen);
  actions_.accept(actions, slots);
  if (has_extras(actions_.columns(), chosen)) return false;
  ledger_.mark_in_flight(chosen);
  post_steps(chosen);
  return true;
}

void WorkerGroup::post_steps(nb::handle slots) { post_steps(read_slots(slots, slots_)); }

void WorkerGroup::post_steps(const Slots& slots) {
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    const Py_ssize_t slot = slots[k];
    if (slot < num_worker_slots_) {
      post(owners_[static_cast<size_t>(slot)], entry_of(Kind::kSlot, static_cast<Entry>(slot)));
    } else {
      own_tasks_.push_back({slot, false, {}, {}});
    }
  }
  board_.ring(kEveryone);
}

void WorkerGroup::queue_own_resets(nb::handle slots, nb::list seeds, nb::handle options) {
  const Slots chosen = read_slots(slots, slots_);
  for (Py_ssize_t k = 0; k < chosen.count; ++k) {
    Ref seed = Ref::checked(PySequence_GetItem(seeds.ptr(), k));
    own_tasks_.push_back({chosen[k], true, std::move(seed), Ref::borrow(options.ptr())});
  }
}

bool WorkerGroup::announce_message(int worker) {
  if (!board_.post(worker, entry_of(Kind::kMessage, 0))) return false;
  board_.ring(worker);
  return true;
}

bool WorkerGroup::wait(const SlotLedger::Wanted& wanted, double seconds) {
  const size_t missing = ledger_.missing(wanted);
  const bool any_counts = wanted.by_count || missing == ledger_.in_flight() - ledger_.done();
  const Py_ssize_t finished = any_counts ? static_cast<Py_ssize_t>(missing) : 1;
  if (board_.finished() >= finished) return true;
  const nb::gil_scoped_release released;
  return board_.wait(finished, static_cast<int64_t>(seconds * 1e9));
}

void WorkerGroup::collect_done() {
  for (int worker = 0; worker < board_.workers(); ++worker) {
    Entry outcome;
    while (board_.take(worker, outcome)) {
      board_.add_taken(worker, 1);
      const auto slot = static_cast<Py_ssize_t>(number_of(outcome));
      newest_[static_cast<size_t>(slot)] = 0;
      has_row_[static_cast<size_t>(slot)] = 1;
      if ((outcome & kHasMessage) != 0) {
        announced_.push_back({worker, slot});
      } else {
        ledger_.mark_done(slot);
      }
    }
  }
}

nb::object WorkerGroup::next_announced() const {
  if (announced_.empty()) return nb::none();
  return nb::make_tuple(announced_.front().worker, announced_.front().slot);
}

void WorkerGroup::finish_announced() {
  ledger_.mark_done(announced_.front().slot);
  announced_.pop_front();
}

nb::object WorkerGroup::next_own() const {
  return own_tasks_.empty() ? nb::none() : nb::object(nb::int_(own_tasks_.front().slot));
}

nb::object WorkerGroup::drive_next() {
  const OwnTask task = std::move(own_tasks_.front());
  own_tasks_.pop_front();
  ledger_.mark_done(task.slot);  // first: the environment may be interrupted
  Stepper::StepEvents events;
  own_->fill(bank(0), task.slot, task.is_reset ? task.seed.get() : nullptr, task.options.get(),
             events);
  return nb::steal(events.as_tuple().release());
}

void WorkerGroup::clear(int worker) {
  board_.clear(worker);
  announced_.erase(
      std::remove_if(announced_.begin(), announced_.end(),
                     [worker](const Announcement& each) { return each.worker == worker; }),
      announced_.end());
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
    if (!is_own && has_row_[static_cast<size_t>(slot)]) {
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
  for (const OwnTask& task : own_tasks_) {
    Py_VISIT(task.seed.get());
    Py_VISIT(task.options.get());
  }
  if (const int stop = batch_banks_.traverse(visit, arg)) return stop;
  return round_banks_.traverse(visit, arg);
}

}  // namespace shoal
