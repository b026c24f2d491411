#include "runner.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "../doorbell/spin.h"
#include "array_tools.h"

namespace shoal {

namespace {

// Shorter work, in nanoseconds, is not worth waking threads.
constexpr double kMinSharedWork = 20'000.0;
// A chunk should be long compared to claiming it, and short enough to balance the load.
constexpr double kShortestChunk = 2'000.0, kLongestChunk = 50'000.0, kChunksForEach = 8.0;
constexpr int64_t kFlagsOfCacheLine = 64;
// The assumed time of a slot before the first measurement.
constexpr double kUnknownCost = 1'000.0;
// How often a wait checks for signals.
constexpr int64_t kSignalCheck = 10'000'000;
constexpr double kLongestWait = 1e9;  // seconds
// From this many actions on, several threads copy them.
constexpr int64_t kMinSharedActions = 16'384;
// The length of a chunk of work that is not shared; signals are checked after each chunk.
constexpr double kUnsharedChunk = 1'000'000.0;

const Tree& tree_of(nb::handle tree) { return nb::cast<const Tree&>(tree); }

void check_fit(const char* what, const Tree& tree, const shoal_leaf* leaves, int count) {
  bool same = tree.leaves.size() == static_cast<size_t>(count) && tree.objects.empty();
  for (size_t k = 0; same && k < tree.leaves.size(); ++k) {
    same = static_cast<size_t>(tree.leaves[k].bytes) == leaf_bytes(leaves[k]);
  }
  if (!same) raise(PyExc_ValueError, "the kernel's %s are not those of its space", what);
}

std::shared_ptr<Engine> make_engine(const shoal_kernel& kernel, const ActionIntake& intake,
                                    const SlotState& state, const KernelRunner::Options& options) {
  if (options.parameters.size() != static_cast<size_t>(kernel.parameter_count)) {
    raise(PyExc_ValueError, "expected %d parameters", kernel.parameter_count);
  }
  check_fit("actions", intake.tree(), kernel.actions, kernel.action_count);
  return std::make_shared<Engine>(
      kernel,
      EngineOptions{state.count, options.mode, options.statistics, options.check_nan,
                    options.max_episode_steps, options.generator},
      SlotColumns{state.finished.data, state.episode_return.data, state.episode_length.data,
                  state.episode_start.data},
      intake.columns().data, options.parameters);
}

}  // namespace

KernelRunner::KernelRunner(nb::handle kernel, nb::handle observations, nb::handle infos,
                           nb::handle intake, nb::handle state, Options options)
    : kernel_owner_(Ref::borrow(kernel.ptr())),
      observations_owner_(Ref::borrow(observations.ptr())),
      infos_owner_(Ref::borrow(infos.ptr())),
      intake_owner_(Ref::borrow(intake.ptr())),
      state_owner_(Ref::borrow(state.ptr())),
      observations_(tree_of(observations)),
      infos_(tree_of(infos)),
      intake_(nb::cast<ActionIntake&>(intake)),
      state_(nb::cast<SlotState&>(state)),
      engine_(make_engine(*nb::cast<const Kernel&>(kernel), intake_, state_, options)),
      team_(options.workers, options.cores, options.may_spin),
      ledger_(state_.count),
      step_cost_(kUnknownCost),
      reset_cost_(kUnknownCost),
      seeds_(static_cast<size_t>(state_.count)) {
  const shoal_kernel& native = engine_->kernel();
  check_fit("observations", observations_, native.observations, native.observation_count);
  check_fit("infos", infos_, native.infos, native.info_count);
}

KernelRunner::~KernelRunner() {
  bool all_ended = false;
  {
    // Other Python threads must be able to run while this one waits for a slow kernel. A thread
    // that releases the GIL of a finalizing interpreter may never get it back.
#if PY_VERSION_HEX >= 0x030d0000
    const bool is_finalizing = Py_IsFinalizing();
#else
    const bool is_finalizing = _Py_IsFinalizing();
#endif
    std::optional<nb::gil_scoped_release> released;
    if (!is_finalizing && PyGILState_Check()) released.emplace();
    all_ended = team_.stop(10.0);
  }
  if (all_ended) return;
  // A detached thread is still inside the kernel: leak the memory that it may write to.
  struct Leaked {
    std::vector<Ref> owners;
    UserBanks banks;
    std::array<Columns, 2> infos;
  };
  new Leaked{
      {kernel_owner_, intake_owner_, state_owner_}, std::move(user_banks_), std::move(info_banks_)};
}

/// Called first in every method: checks that the runner is open and finishes an interrupted job.
void KernelRunner::check_usable() {
  if (stopped_) {
    Ref error = error_class("StoppedVectorError");
    raise(error.get(), "the vector environment is closed");
  }
  finish_interrupted();
}

std::shared_ptr<SlotJob> KernelRunner::begin(std::vector<int64_t> slots, Rows rows,
                                             std::unique_ptr<SlotJob::Reset> reset,
                                             bool first_come) {
  const int64_t count = slots.empty() ? state_.count : static_cast<int64_t>(slots.size());
  const double cost = reset == nullptr ? step_cost_ : reset_cost_;
  const bool is_long = static_cast<double>(count) * cost >= kMinSharedWork;
  const bool shared = is_long && team_.workers() > 0;
  auto chunk = static_cast<double>(count);
  if (shared) {
    const double fair = chunk / (kChunksForEach * (team_.workers() + 1));
    const double shortest = kShortestChunk / cost, longest = kLongestChunk / cost;
    chunk = std::clamp(fair, shortest, std::max(shortest, longest));
  } else if (is_long) {
    chunk = kUnsharedChunk / cost;
  }
  auto size = static_cast<int64_t>(std::clamp(chunk, 1.0, static_cast<double>(count)));
  // Flags are bytes: avoid that two threads often write to the same cache line.
  if (shared && size > kFlagsOfCacheLine) size -= size % kFlagsOfCacheLine;
  auto job = std::make_shared<SlotJob>(engine_, std::move(slots), std::move(rows), std::move(reset),
                                       size, first_come, shared ? team_.workers() + 1 : 1);
  if (shared) team_.post(job);
  return job;
}

/// Updates the estimated cost of a slot from a finished job.
void KernelRunner::record_cost(const SlotJob& job) {
  double& cost = job.is_reset() ? reset_cost_ : step_cost_;
  const double measured =
      std::max(1.0, static_cast<double>(job.busy()) / static_cast<double>(job.slot_count()));
  // Limited, since a preempted thread measures far too much once.
  cost += 0.25 * (std::min(measured, 4.0 * cost) - cost);
}

/// Executes the next chunk of a job, or waits at most `nanoseconds` for threads that do.
void KernelRunner::make_progress(ChunkedJob& job, int64_t nanoseconds) {
  const int64_t done = job.done();
  if (team_.help(job)) return;
  team_.wait(job, done, std::min(nanoseconds, kSignalCheck));
}

/// Finishes a job. If a signal handler raises, the job continues, and the next call waits for it.
void KernelRunner::finish(const std::shared_ptr<SlotJob>& job) {
  const double cost = job->is_reset() ? reset_cost_ : step_cost_;
  if (static_cast<double>(job->slot_count()) * cost < kMinSharedWork) {
    while (team_.help(*job)) {  // too short to be worth releasing the GIL
    }
  }
  while (!job->is_done()) {
    {
      const nb::gil_scoped_release released;
      const int64_t deadline = monotonic_ns() + kSignalCheck;
      while (!job->is_done() && monotonic_ns() < deadline) make_progress(*job, kSignalCheck);
    }
    if (job->is_done()) break;
    if (team_.has_lost_chunks() && !job->has_unclaimed()) {
      raise(PyExc_RuntimeError,
            "the process was forked while a kernel was executing for more than a second: its slots "
            "are lost in the child process");
    }
    if (PyErr_CheckSignals() != 0) {
      interrupted_ = job;
      throw nb::python_error();
    }
  }
  record_cost(*job);
}

void KernelRunner::finish_interrupted() {
  if (!interrupted_) return;
  const std::shared_ptr<SlotJob> job = std::exchange(interrupted_, nullptr);
  finish(job);
  raise_failure(job->report().failures);
}

void KernelRunner::raise_failure(const std::vector<Failure>& failures) const {
  if (failures.empty()) return;
  // The first failure of the first slot: later ones, such as a NaN, may be consequences.
  const Failure* first = &failures.front();
  std::vector<int64_t> slots;
  for (const Failure& failure : failures) {
    slots.push_back(failure.slot);
    if (failure.slot < first->slot) first = &failure;
  }
  std::sort(slots.begin(), slots.end());
  const auto others = std::unique(slots.begin(), slots.end()) - slots.begin() - 1;
  Ref error = error_class("KernelError");
  const char* reason =
      first->message.empty() ? "the kernel gave no reason" : first->message.c_str();
  Ref message = Ref::checked(
      PyUnicode_DecodeUTF8(reason, static_cast<Py_ssize_t>(std::strlen(reason)), "replace"));
  Ref more = Ref::checked(PyUnicode_FromString(""));
  if (others > 0) {
    more = Ref::checked(PyUnicode_FromFormat(
        " (and %zd more slot%s)", static_cast<Py_ssize_t>(others), others > 1 ? "s" : ""));
  }
  raise(error.get(), "slot %lld of %zd, in its %s: %U%U", static_cast<long long>(first->slot),
        state_.count, first->method, message.get(), more.get());
}

Bank& KernelRunner::renewed(Bank* bank, Py_ssize_t rows) {
  if (bank == nullptr) return user_banks_.renewed(observations_, rows);
  if (bank->rows < rows) raise(PyExc_ValueError, "the bank has too few rows");
  return *bank;
}

Columns& KernelRunner::renewed_infos(Py_ssize_t rows) {
  info_turn_ = 1 - info_turn_;
  Columns& columns = info_banks_[info_turn_];
  if (!infos_.leaves.empty()) columns.renew(infos_, rows);
  return columns;
}

/// Checks actions for all slots and copies them to the columns that the kernel reads.
void KernelRunner::take_actions(nb::handle actions) {
  const Slots all{nullptr, state_.count};
  const auto direct = team_.workers() > 0 && state_.count >= kMinSharedActions
                          ? intake_.direct_copy(actions)
                          : std::nullopt;
  if (direct) {
    const CopyJob::Copy copy{direct->source,     direct->target, static_cast<size_t>(direct->bytes),
                             direct->is_bounded, direct->low,    direct->high};
    const auto job = std::make_shared<CopyJob>(copy, state_.count, team_.workers() + 1);
    team_.post(job);
    {
      const nb::gil_scoped_release released;
      while (!job->is_done()) make_progress(*job, kSignalCheck);
    }
    if (job->all_within_bounds()) return;
  }
  intake_.accept_occupied(actions, all);
}

nb::object KernelRunner::step(nb::handle actions, Bank* bank) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots all{nullptr, state_.count};
  ledger_.check_idle(all);
  check_was_reset(all);
  take_actions(actions);
  Bank& target = renewed(bank, state_.count);
  Columns& infos = renewed_infos(state_.count);
  const std::shared_ptr<SlotJob> job = begin({}, rows_of(target, infos), nullptr, false);
  finish(job);
  raise_failure(job->report().failures);
  Ref batch = Ref::checked(PyTuple_New(5));
  put_results(target, infos, all, job->report().any_ended, batch.get(), 0);
  return nb::steal(batch.release());
}

void KernelRunner::check_was_reset(const Slots& slots) const {
  if (all_were_reset_) return;
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    if (engine_->is_begun(slots[k])) continue;
    Ref error = error_class("SlotNotResetError");
    raise(error.get(), "slot %zd has never been reset: it needs a reset before its first step",
          slots[k]);
  }
  all_were_reset_ = slots.count == state_.count;
}

void KernelRunner::send(nb::handle actions, nb::handle slots) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  ledger_.check_idle(chosen);
  check_was_reset(chosen);
  intake_.accept_occupied(actions, chosen);
  if (chosen.count == 0) return;
  const std::vector<int64_t> numbers = numbers_of(chosen);
  pending_.push_back({begin(numbers, engine_->result_buffer(), nullptr, true)});
  ledger_.mark_in_flight(chosen);
}

void KernelRunner::send_reset(nb::handle slots, nb::list seeds, std::vector<double> options) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  ledger_.check_idle(chosen);
  auto reset = std::make_unique<SlotJob::Reset>();
  reset->seeds = read_seeds(chosen, seeds);
  reset->options = std::move(options);
  if (chosen.count == 0) return;
  const std::vector<int64_t> numbers = numbers_of(chosen);
  pending_.push_back({begin(numbers, engine_->result_buffer(), std::move(reset), true)});
  ledger_.mark_in_flight(chosen);
}

/// Marks the slots of finished chunks done.
void KernelRunner::collect_done() {
  std::vector<int64_t> slots;
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    SlotJob& job = *pending->job;
    slots.clear();
    for (int64_t chunk; (chunk = job.finished_chunk(pending->collected)) >= 0;
         ++pending->collected) {
      job.append_slots(chunk, slots);
    }
    for (const int64_t slot : slots) ledger_.mark_done(slot);
    {
      // The failures of a chunk are reported before it is finished.
      const std::lock_guard lock(job.report().mutex);
      for (Failure& failure : job.report().failures) failures_.push_back(std::move(failure));
      job.report().failures.clear();
    }
    if (!job.is_done() || pending->collected < job.chunk_count()) {
      ++pending;
      continue;
    }
    record_cost(job);
    pending = pending_.erase(pending);
  }
}

nb::object KernelRunner::receive(const SlotLedger::Wanted& wanted, double seconds, Bank* bank) {
  const SlotsInUse in_use(state_);
  check_usable();
  const int64_t deadline =
      seconds < 0.0 ? INT64_MAX
                    : monotonic_ns() + static_cast<int64_t>(std::min(seconds, kLongestWait) * 1e9);
  for (collect_done(); ledger_.missing(wanted) > 0; collect_done()) {
    if (pending_.empty()) raise(PyExc_RuntimeError, "the requested slots were never sent");
    // If all chunks of the oldest job are claimed, help with the next one.
    auto pending = std::find_if(pending_.begin(), pending_.end(),
                                [](const PendingJob& p) { return p.job->has_unclaimed(); });
    const bool has_work = pending != pending_.end();
    const std::shared_ptr<SlotJob> job = (has_work ? *pending : pending_.front()).job;
    // Also after the deadline: repeated calls without any time must finish at some point.
    const int64_t remaining = std::max<int64_t>(0, deadline - monotonic_ns());
    {
      const nb::gil_scoped_release released;
      make_progress(*job, remaining);
    }
    if (team_.has_lost_chunks() && !has_work) finish(job);  // raises
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (monotonic_ns() >= deadline) {
      collect_done();
      if (ledger_.missing(wanted) == 0) break;
      return nb::none();
    }
  }

  const std::vector<int64_t> received = ledger_.select(wanted);
  const Slots slots{received.data(), static_cast<Py_ssize_t>(received.size())};
  ledger_.clear(slots);
  std::vector<Failure> failures, others;
  for (Failure& failure : failures_) {
    const bool is_received = !ledger_.is_in_flight(failure.slot);
    (is_received ? failures : others).push_back(std::move(failure));
  }
  failures_ = std::move(others);
  raise_failure(failures);

  Bank& target = renewed(bank, slots.count);
  Columns& infos = renewed_infos(slots.count);
  const Rows& result_buffer = engine_->result_buffer();
  gather(result_buffer.observations, engine_->observation_bytes(), slots, target.observations.data);
  gather(result_buffer.infos, engine_->info_bytes(), slots, infos.data);
  bool any_ended = false;
  for (Py_ssize_t row = 0; row < slots.count; ++row) {
    const int64_t slot = slots[row];
    target.rewards[row] = result_buffer.rewards[slot];
    target.terminated[row] = result_buffer.terminated[slot];
    target.truncated[row] = result_buffer.truncated[slot];
    any_ended |= (result_buffer.terminated[slot] | result_buffer.truncated[slot]) != 0;
  }
  Ref numbers = new_array(NPY_INT64, {slots.count});
  std::copy(received.begin(), received.end(), data_of<int64_t>(numbers));
  Ref batch = Ref::checked(PyTuple_New(6));
  PyTuple_SET_ITEM(batch.get(), 0, numbers.release());
  put_results(target, infos, slots, any_ended, batch.get(), 1);
  return nb::steal(batch.release());
}

void KernelRunner::drop() {
  const SlotsInUse in_use(state_);
  check_usable();
  for (; !pending_.empty(); pending_.pop_front()) {
    const std::shared_ptr<SlotJob> job = pending_.front().job;
    try {
      finish(job);
    } catch (...) {
      interrupted_ = nullptr;  // it is still pending
      throw;
    }
  }
  failures_.clear();
  ledger_.clear_all();
}

bool KernelRunner::stop(double seconds) {
  stopped_ = true;
  const int64_t deadline =
      monotonic_ns() + static_cast<int64_t>(std::clamp(seconds, 0.0, kLongestWait) * 1e9);
  bool all_ended = false;
  {
    const nb::gil_scoped_release released;
    all_ended = team_.stop(seconds);
  }
  // A call of another thread returns now that the vector is stopped.
  while (state_.busy && monotonic_ns() < deadline) {
    const nb::gil_scoped_release released;
    const timespec duration{0, 1'000'000};
    nanosleep(&duration, nullptr);
  }
  return all_ended && !state_.busy;
}

}  // namespace shoal
