#include "worker_loop.h"

#include <time.h>

#include <thread>

namespace shoal {

namespace {

// How often a waiting worker checks for signals.
constexpr int64_t kSignalCheck = 1'000'000'000;

// How often a stand-in checks whether it is needed: rarely while there are only rounds, more often
// while slots are sent separately, and most often for some time after a stand-in took over.
constexpr auto kIdleInterval = std::chrono::milliseconds(100);
constexpr auto kNormalInterval = std::chrono::milliseconds(10);
constexpr auto kShortInterval = std::chrono::milliseconds(1);
constexpr int kShortChecks = 2000;

int64_t cpu_time_of_process() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

/// Slots that were posted together.
struct WorkerLoop::Work {
  std::vector<int64_t> slots;
  Py_ssize_t bank;
  Ref seeds, options;
  bool whole;       // the whole share, reported as one
  bool has_extras;  // some actions arrived in a message and are released after their step
  size_t next = 0;  // the first slot that was not started
  size_t unfinished;
  Stepper::StepEvents events;
};

WorkerLoop::WorkerLoop(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks,
                       nb::handle start_times, int worker, Py_ssize_t first, Py_ssize_t last)
    : board_owner_(Ref::borrow(board.ptr())),
      stepper_owner_(Ref::borrow(stepper.ptr())),
      actions_owner_(Ref::borrow(actions.ptr())),
      bank_list_(Ref::borrow(banks.ptr())),
      board_(nb::cast<Board&>(board)),
      stepper_(nb::cast<Stepper&>(stepper)),
      actions_(nb::cast<ActionIntake&>(actions)),
      worker_(worker),
      share_{nullptr, last - first, first},
      active_(static_cast<size_t>(last - first)) {
  for (nb::handle bank : banks) banks_.push_back(&nb::cast<Bank&>(bank));
  if (!start_times.is_none()) {
    start_times_ = Column<double>(start_times, NPY_FLOAT64, banks_.at(0)->rows);
  }
  has_objects_ = !banks_.at(0)->observations.objects.empty();
}

void WorkerLoop::add(nb::handle slots, Py_ssize_t bank, nb::handle seeds, nb::handle options,
                     bool extras) {
  auto work = std::make_shared<Work>();
  const Slots part = chosen(slots);
  for (Py_ssize_t k = 0; k < part.count; ++k) work->slots.push_back(part[k]);
  work->bank = bank;
  if (!seeds.is_none()) work->seeds = Ref::borrow(seeds.ptr());
  work->options = Ref::borrow(options.ptr());
  work->whole = slots.is_none();
  work->has_extras = extras;
  work->unfinished = work->slots.size();
  queue_.push_back(std::move(work));
}

void WorkerLoop::start(Py_ssize_t slot) {
  active_[static_cast<size_t>(slot - share_.first)] = 1;
  if (start_times_.data != nullptr) start_times_[slot] = static_cast<double>(monotonic_ns()) * 1e-9;
  board_.start(worker_, static_cast<uint32_t>(slot));
}

void WorkerLoop::end(Py_ssize_t slot) {
  if (start_times_.data != nullptr) start_times_[slot] = 0.0;
  active_[static_cast<size_t>(slot - share_.first)] = 0;
}

/// Fills the queue from the board; false if there is a message that Python must read.
bool WorkerLoop::find_work() {
  Entry task;
  if (!board_.next(worker_, task)) return true;
  if (kind_of(task) == Kind::kMessage) return false;
  if (kind_of(task) == Kind::kSlot) {
    auto work = std::make_shared<Work>();
    work->slots = {number_of(task)};
    work->bank = 0;
    work->whole = work->has_extras = false;
    work->unfinished = 1;
    queue_.push_back(std::move(work));
  } else {
    add(nb::none(), number_of(task), nb::none(), nb::none(), false);
  }
  return true;
}

nb::object WorkerLoop::serve(uint64_t duty) {
  for (;;) {
    if (duty != duty_.load()) return nb::borrow(Py_False);
    if (queue_.empty()) {
      if (!find_work()) return nb::none();
      if (queue_.empty()) {
        check(PyErr_CheckSignals());
        const nb::gil_scoped_release released;
        board_.wait_for_task(worker_, kSignalCheck);
      }
      continue;
    }
    nb::object outcome = work_on(queue_.front(), duty);
    if (!outcome.is_none()) return outcome;
  }
}

/// Fills the row of a slot. Every exception becomes an error of the slot and is forwarded to the
/// caller, also those that are no Exception, such as KeyboardInterrupt.
void WorkerLoop::fill(Py_ssize_t bank, Py_ssize_t slot, const Ref& seed, const Ref& options,
                      Stepper::StepEvents& events) {
  Ref raised;
  try {
    stepper_.fill(*banks_.at(static_cast<size_t>(bank)), slot, seed.get(), options.get(), events);
    return;
  } catch (const nb::python_error& error) {
    raised = Ref::borrow(error.value().ptr());
  } catch (const std::exception& error) {
    raised = Ref::checked(PyObject_CallFunction(PyExc_RuntimeError, "s", error.what()));
  }
  Ref pair = Ref::checked(Py_BuildValue("(nO)", slot, raised.get()));
  if (!events.errors) events.errors = Ref::checked(PyList_New(0));
  check(PyList_Append(events.errors.get(), pair.get()));
}

/// Steps the next slot of this work; returns an outcome if it does not fit on the board.
nb::object WorkerLoop::work_on(std::shared_ptr<Work> work, uint64_t duty) {
  const size_t turn = work->next++;
  const Py_ssize_t slot = work->slots[turn];
  if (work->next == work->slots.size()) queue_.pop_front();
  more_.store(!queue_.empty(), std::memory_order_relaxed);

  Stepper::StepEvents of_slot;
  Stepper::StepEvents& events = work->whole ? work->events : of_slot;
  Ref seed;
  if (work->seeds) {
    seed = Ref::checked(PySequence_GetItem(work->seeds.get(), static_cast<Py_ssize_t>(turn)));
  }
  start(slot);
  if (!work->whole && !work->seeds) {
    in_environment_.store(true);
    in_use_.store(true, std::memory_order_relaxed);
  }
  fill(work->bank, slot, seed, work->options, events);
  end(slot);
  if (duty == duty_.load()) in_environment_.store(false);
  if (work->has_extras) actions_.drop_extras_of(slot);
  if (--work->unfinished > 0 && work->whole) return nb::none();

  if (events.nothing() && !has_objects_) {
    const Entry outcome =
        work->whole ? entry_of(Kind::kShare, 0) : entry_of(Kind::kSlot, static_cast<Entry>(slot));
    board_.finish(worker_, outcome, work->whole ? static_cast<uint32_t>(share_.count) : 1);
    return nb::none();
  }
  Ref reported_slot = work->whole ? Ref::borrow(Py_None) : Ref::checked(PyLong_FromSsize_t(slot));
  return nb::steal(
      Py_BuildValue("(OnO)", reported_slot.get(), work->bank, events.as_tuple().get()));
}

nb::object WorkerLoop::drive(Py_ssize_t slot, Py_ssize_t bank, nb::handle seeds) {
  Stepper::StepEvents events;
  Ref seed;
  if (!seeds.is_none()) seed = Ref::checked(PySequence_GetItem(seeds.ptr(), 0));
  start(slot);
  fill(bank, slot, seed, Ref::borrow(Py_None), events);
  end(slot);
  actions_.drop_extras_of(slot);
  return nb::steal(events.as_tuple().release());
}

void WorkerLoop::finish(nb::handle slot, bool has_message) {
  const Entry message = has_message ? kHasMessage : 0;
  if (slot.is_none()) {
    board_.finish(worker_, entry_of(Kind::kShare, 0) | message,
                  static_cast<uint32_t>(share_.count));
  } else {
    board_.finish(worker_, entry_of(Kind::kSlot, nb::cast<Entry>(slot)) | message, 1);
  }
}

uint64_t WorkerLoop::stand_by() {
  int short_checks = duty_.load() > 1 ? kShortChecks : 0;
  for (;;) {
    {
      const nb::gil_scoped_release released;
      uint32_t started = board_.started(worker_);
      int64_t cpu_time = cpu_time_of_process();
      for (;;) {
        const auto pause = short_checks > 0          ? kShortInterval
                           : in_use_.exchange(false) ? kNormalInterval
                                                     : kIdleInterval;
        short_checks -= short_checks > 0;
        std::this_thread::sleep_for(pause);
        if (dismissed_.load()) return 0;
        const uint32_t started_now = board_.started(worker_);
        const int64_t cpu_time_now = cpu_time_of_process();
        const bool is_blocked =
            cpu_time_now - cpu_time < std::chrono::nanoseconds(pause).count() / 5;
        // Not if the environment is computing: a second thread would only compete for the GIL.
        const bool has_more = more_.load() || board_.has_task(worker_);
        if (started_now == started && is_blocked && has_more && in_environment_.load()) break;
        started = started_now;
        cpu_time = cpu_time_now;
      }
    }
    // The environment may have returned since the check; it cannot while this holds the GIL.
    if (in_environment_.exchange(false) && !dismissed_.load()) return duty_.fetch_add(1) + 1;
  }
}

void WorkerLoop::wait_until_idle(nb::handle slots) {
  const Slots part = chosen(slots);
  for (;;) {
    bool idle = true;
    for (Py_ssize_t k = 0; k < part.count; ++k) {
      idle &= active_[static_cast<size_t>(part[k] - share_.first)] == 0;
    }
    if (idle) return;
    const nb::gil_scoped_release released;
    std::this_thread::sleep_for(kShortInterval);
  }
}

int WorkerLoop::traverse(visitproc visit, void* arg) const {
  Py_VISIT(board_owner_.get());
  Py_VISIT(stepper_owner_.get());
  Py_VISIT(actions_owner_.get());
  Py_VISIT(bank_list_.get());
  return 0;
}

}  // namespace shoal
