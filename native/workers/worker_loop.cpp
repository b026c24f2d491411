#include "worker_loop.h"

#include <time.h>

#include <thread>

namespace shoal {

namespace {

// A worker that waits looks up this often, to see whether a signal has come.
constexpr int64_t kLookUp = 1'000'000'000;

// How often a stand-in looks whether it is needed: hardly ever while there are rounds only, rarely
// while all goes well, and often for a while after a stand-in was needed.
constexpr auto kIdle = std::chrono::milliseconds(100);
constexpr auto kCalm = std::chrono::milliseconds(10);
constexpr auto kAlert = std::chrono::milliseconds(1);
constexpr int kAlertLooks = 2000;

int64_t cpu_time_of_process() {
  timespec spent;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

}  // namespace

/// Slots that were given to the worker together.
struct WorkerLoop::Job {
  std::vector<int64_t> slots;
  Py_ssize_t bank;
  Ref seeds, options;
  bool whole;       // the share, told of as one
  bool has_extras;  // some actions came by message, and are let go of after their step
  size_t next = 0;  // the first slot that nobody has begun with
  size_t unfinished;
  Stepper::StepEvents told;
};

WorkerLoop::WorkerLoop(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks,
                       nb::handle begun, int worker, Py_ssize_t first, Py_ssize_t last)
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
  if (!begun.is_none()) begun_ = Column<double>(begun, NPY_FLOAT64, banks_.at(0)->rows);
  has_objects_ = !banks_.at(0)->observations.objects.empty();
}

void WorkerLoop::add(nb::handle slots, Py_ssize_t bank, nb::handle seeds, nb::handle options,
                     bool extras) {
  auto job = std::make_shared<Job>();
  const Slots part = chosen(slots);
  for (Py_ssize_t k = 0; k < part.count; ++k) job->slots.push_back(part[k]);
  job->bank = bank;
  if (!seeds.is_none()) job->seeds = Ref::borrow(seeds.ptr());
  job->options = Ref::borrow(options.ptr());
  job->whole = slots.is_none();
  job->has_extras = extras;
  job->unfinished = job->slots.size();
  jobs_.push_back(std::move(job));
}

void WorkerLoop::begin(Py_ssize_t slot) {
  active_[static_cast<size_t>(slot - share_.first)] = 1;
  if (begun_.data != nullptr) begun_[slot] = static_cast<double>(monotonic_ns()) * 1e-9;
  board_.begin(worker_, static_cast<uint32_t>(slot));
}

void WorkerLoop::end(Py_ssize_t slot) {
  if (begun_.data != nullptr) begun_[slot] = 0.0;
  active_[static_cast<size_t>(slot - share_.first)] = 0;
}

/// Makes sure that the first job has a slot that nobody has begun with; false if that takes Python.
bool WorkerLoop::find_work() {
  Entry task;
  if (!board_.next(worker_, task)) return true;
  if (kind_of(task) == Kind::kMail) return false;
  if (kind_of(task) == Kind::kSlot) {
    auto job = std::make_shared<Job>();
    job->slots = {number_of(task)};
    job->bank = 0;
    job->whole = job->has_extras = false;
    job->unfinished = 1;
    jobs_.push_back(std::move(job));
  } else {
    add(nb::none(), number_of(task), nb::none(), nb::none(), false);
  }
  return true;
}

nb::object WorkerLoop::serve(uint64_t duty) {
  for (;;) {
    if (duty != duty_.load()) return nb::borrow(Py_False);
    if (jobs_.empty()) {
      if (!find_work()) return nb::none();
      if (jobs_.empty()) {
        check(PyErr_CheckSignals());
        const nb::gil_scoped_release released;
        board_.wait_for_task(worker_, kLookUp);
      }
      continue;
    }
    nb::object outcome = work_on(jobs_.front(), duty);
    if (!outcome.is_none()) return outcome;
  }
}

/// Begins with the next slot of a job; returns an outcome if there is one that the board cannot
/// tell.
nb::object WorkerLoop::work_on(std::shared_ptr<Job> job, uint64_t duty) {
  const size_t turn = job->next++;
  const Py_ssize_t slot = job->slots[turn];
  if (job->next == job->slots.size()) jobs_.pop_front();
  more_.store(!jobs_.empty(), std::memory_order_relaxed);

  Stepper::StepEvents alone;
  Stepper::StepEvents& told = job->whole ? job->told : alone;
  Ref seed;
  if (job->seeds) {
    seed = Ref::checked(PySequence_GetItem(job->seeds.get(), static_cast<Py_ssize_t>(turn)));
  }
  begin(slot);
  if (!job->whole && !job->seeds) {
    in_environment_.store(true);
    in_use_.store(true, std::memory_order_relaxed);
  }
  try {
    stepper_.fill(*banks_[static_cast<size_t>(job->bank)], slot, seed.get(), job->options.get(),
                  told);
  } catch (nb::python_error& error) {  // a wish to stop: the caller's to grant
    Ref pair = Ref::checked(Py_BuildValue("(nO)", slot, error.value().ptr()));
    if (!told.errors) told.errors = Ref::checked(PyList_New(0));
    check(PyList_Append(told.errors.get(), pair.get()));
  }
  end(slot);
  if (duty == duty_.load()) in_environment_.store(false);
  if (job->has_extras) actions_.drop_extras_of(slot);
  if (--job->unfinished > 0 && job->whole) return nb::none();

  if (told.nothing() && !has_objects_) {
    const Entry outcome =
        job->whole ? entry_of(Kind::kShare, 0) : entry_of(Kind::kSlot, static_cast<Entry>(slot));
    board_.finish(worker_, outcome, job->whole ? static_cast<uint32_t>(share_.count) : 1);
    return nb::none();
  }
  Ref which = job->whole ? Ref::borrow(Py_None) : Ref::checked(PyLong_FromSsize_t(slot));
  return nb::steal(Py_BuildValue("(OnO)", which.get(), job->bank, told.as_tuple().get()));
}

nb::object WorkerLoop::drive(Py_ssize_t slot, Py_ssize_t bank, nb::handle seeds) {
  Stepper::StepEvents told;
  Ref seed;
  if (!seeds.is_none()) seed = Ref::checked(PySequence_GetItem(seeds.ptr(), 0));
  begin(slot);
  stepper_.fill(*banks_.at(static_cast<size_t>(bank)), slot, seed.get(), Py_None, told);
  end(slot);
  actions_.drop_extras_of(slot);
  return nb::steal(told.as_tuple().release());
}

void WorkerLoop::finish(nb::handle slot, bool has_mail) {
  const Entry mail = has_mail ? kHasMail : 0;
  if (slot.is_none()) {
    board_.finish(worker_, entry_of(Kind::kShare, 0) | mail, static_cast<uint32_t>(share_.count));
  } else {
    board_.finish(worker_, entry_of(Kind::kSlot, nb::cast<Entry>(slot)) | mail, 1);
  }
}

uint64_t WorkerLoop::stand_by() {
  int alert = duty_.load() > 1 ? kAlertLooks : 0;
  for (;;) {
    {
      const nb::gil_scoped_release released;
      uint32_t begun = board_.begun(worker_);
      int64_t spent = cpu_time_of_process();
      for (;;) {
        const auto pause = alert > 0 ? kAlert : in_use_.exchange(false) ? kCalm : kIdle;
        alert -= alert > 0;
        std::this_thread::sleep_for(pause);
        if (dismissed_.load()) return 0;
        const uint32_t begun_now = board_.begun(worker_);
        const int64_t spent_now = cpu_time_of_process();
        const bool waits = spent_now - spent < std::chrono::nanoseconds(pause).count() / 5;
        // Busy environments are left alone: another thread would only fight them for the GIL.
        const bool has_more = more_.load() || board_.has_task(worker_);
        if (begun_now == begun && waits && has_more && in_environment_.load()) break;
        begun = begun_now;
        spent = spent_now;
      }
    }
    // Now with the GIL: whether it is still so.
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
    std::this_thread::sleep_for(kAlert);
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
