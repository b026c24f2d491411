#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <system_error>

#include "../doorbell/bell.h"

namespace shoal {

namespace {

constexpr int64_t kLongestSleep = 1'000'000'000;
constexpr int64_t kForkPatience = 1'000'000'000;
constexpr double kLongestStop = 1e6;

/// How many chunks the current thread is inside of: a kernel may itself fork.
thread_local int chunks_inside = 0;

void nap() {
  const timespec moment{0, 20'000};
  nanosleep(&moment, nullptr);
}

/// A lock for a few instructions, for which all threads come at the same moment: whoever slept for
/// it would come too late. A child of fork can simply open it.
class BriefLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      while (locked_.load(std::memory_order_relaxed)) pause_cpu();
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace

ChunkedJob::ChunkedJob(int64_t chunks, bool first_come, int participants)
    : chunks_(chunks), first_come_(first_come), ranges_(static_cast<size_t>(participants)) {
  for (int k = 0; k < participants; ++k) {
    ChunkRange& range = ranges_[static_cast<size_t>(k)];
    range.next.store(chunks * k / participants, std::memory_order_relaxed);
    range.end = chunks * (k + 1) / participants;
  }
}

bool ChunkedJob::has_unclaimed() const {
  return std::any_of(ranges_.begin(), ranges_.end(), [](const ChunkRange& range) {
    return range.next.load(std::memory_order_relaxed) < range.end;
  });
}

int64_t ChunkedJob::claim(int participant) {
  const size_t count = ranges_.size();
  for (size_t k = 0; k < count; ++k) {
    ChunkRange& range = ranges_[(static_cast<size_t>(participant) + k) % count];
    if (range.next.load(std::memory_order_relaxed) >= range.end) continue;
    const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk < range.end) return chunk;
  }
  return -1;
}

void ChunkedJob::cancel() {
  int64_t unclaimed = 0;
  for (ChunkRange& range : ranges_) {
    unclaimed += range.end - std::min(range.next.exchange(range.end), range.end);
  }
  done_.fetch_add(unclaimed, std::memory_order_acq_rel);
}

struct Team::State {
  State(int worker_count, std::vector<int> worker_cores, bool spinning)
      : workers(worker_count),
        cores(std::move(worker_cores)),
        may_spin(spinning),
        ids(static_cast<size_t>(worker_count)),
        calls(call_words, make_futex_sleep(), spinning),
        answers(answer_words, make_futex_sleep(), spinning) {}

  const int workers;
  const std::vector<int> cores;
  const bool may_spin;
  std::vector<std::atomic<pid_t>> ids;  // of the threads as the system knows them, 0 for none

  BellWords call_words, answer_words;
  Bell calls;    // for ringing: each worker waits at a bell of its own over the same words
  Bell answers;  // at which the caller waits

  alignas(64) BriefLock mutex;
  std::deque<std::shared_ptr<ChunkedJob>> jobs;  // that may have unclaimed chunks
  std::vector<pthread_t> threads;

  std::atomic<bool> stopping{false};
  std::atomic<bool> paused{false};
  std::atomic<int> inside{0};          // threads that are inside a chunk, or about to be
  std::atomic<bool> abandoned{false};  // a thread did not end, and may be inside a chunk for ever
  std::atomic<bool> lost{false};       // chunks were under way when this process was forked off

  /// The oldest job with unclaimed chunks.
  std::shared_ptr<ChunkedJob> next() {
    const std::lock_guard lock(mutex);
    while (!jobs.empty() && !jobs.front()->has_unclaimed()) jobs.pop_front();
    return jobs.empty() ? nullptr : jobs.front();
  }

  void enter() {
    for (;;) {
      inside.fetch_add(1);
      if (!paused.load() || chunks_inside > 0) break;
      inside.fetch_sub(1);
      nap();
    }
    ++chunks_inside;
  }

  void leave() {
    --chunks_inside;
    inside.fetch_sub(1);
  }

  /// Works on a chunk; false where none is left to claim.
  bool run_next(ChunkedJob& job, int participant) {
    const int64_t chunk = job.claim(participant);
    if (chunk < 0) return false;
    job.run(chunk);
    const int64_t done = job.done_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (job.first_come_ || done == job.chunks_) answers.ring(kEveryone);
    return true;
  }

  bool help(ChunkedJob& job) {
    enter();
    const bool claimed = run_next(job, workers);
    leave();
    return claimed;
  }

  void work(int number) {
    ids[static_cast<size_t>(number)].store(gettid());
    Bell call(call_words, make_futex_sleep(), may_spin);
    for (;;) {
      const uint32_t heard = call.generation();
      if (stopping.load()) return;
      if (const std::shared_ptr<ChunkedJob> job = next()) {
        enter();
        while (!stopping.load() && !paused.load() && run_next(*job, number)) {
        }
        leave();
      } else {
        call.wait(heard, number, kLongestSleep);
      }
    }
  }

  void start(const std::shared_ptr<State>& self);
};

namespace {

/// All teams of this process, for the moments before and after a fork.
struct Registry {
  std::mutex mutex;
  std::vector<Team::State*> teams;
};

Registry& registry() {
  // Never destroyed: threads may still be running when the process ends.
  static auto* teams = new Registry;
  return *teams;
}

void before_fork() {
  registry().mutex.lock();
  for (Team::State* team : registry().teams) {
    team->paused.store(true);
    // A kernel that forks is inside a chunk itself, and would wait for itself.
    const int64_t patience = monotonic_ns() + kForkPatience;
    while (chunks_inside == 0 && team->inside.load() > 0 && monotonic_ns() < patience) nap();
    team->mutex.lock();
  }
}

void after_fork_in_parent() {
  for (Team::State* team : registry().teams) {
    team->mutex.unlock();
    team->paused.store(false);
  }
  registry().mutex.unlock();
}

void after_fork_in_child() {
  for (Team::State* team : registry().teams) {
    // The threads are gone, and so are those who slept at the bells.
    team->mutex.unlock();
    team->threads.clear();
    for (auto& id : team->ids) id.store(0);
    team->call_words.sleepers.store(0);
    team->answer_words.sleepers.store(0);
    const int mine = chunks_inside > 0 ? 1 : 0;
    if (team->inside.load() > mine) team->lost.store(true);
    team->inside.store(mine);
    team->paused.store(false);
  }
  new (&registry().mutex) std::mutex;
}

void enroll(Team::State* team) {
  static const int status = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (status != 0) throw std::system_error(status, std::generic_category());
  const std::lock_guard lock(registry().mutex);
  registry().teams.push_back(team);
}

void strike_off(Team::State* team) {
  const std::lock_guard lock(registry().mutex);
  auto& teams = registry().teams;
  teams.erase(std::remove(teams.begin(), teams.end(), team), teams.end());
}

/// What a thread is started with.
struct Start {
  std::shared_ptr<Team::State> state;
  int number;
};

void* begin_thread(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  start->state->work(start->number);
  return nullptr;
}

void bind_to_core(pthread_t thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

}  // namespace

void Team::State::start(const std::shared_ptr<State>& self) {
  // Signals are for the threads of Python.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  int status = 0;
  while (status == 0 && static_cast<int>(threads.size()) < workers) {
    const int number = static_cast<int>(threads.size());
    auto argument = std::make_unique<Start>(Start{self, number});
    pthread_t thread;
    status = pthread_create(&thread, nullptr, begin_thread, argument.get());
    if (status != 0) break;
    static_cast<void>(argument.release());  // it is the thread's now
    if (!cores.empty()) bind_to_core(thread, cores[static_cast<size_t>(number) % cores.size()]);
    threads.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  // Without any thread the caller does all the work; it is slower, but right.
}

Team::Team(int workers, std::vector<int> cores, bool may_spin)
    : state_(std::make_shared<State>(workers, std::move(cores), may_spin)) {
  enroll(state_.get());
}

Team::~Team() {
  stop(0.0);
  strike_off(state_.get());
}

int Team::workers() const { return state_->workers; }

std::vector<int> Team::thread_ids() const { return {state_->ids.begin(), state_->ids.end()}; }

void Team::post(std::shared_ptr<ChunkedJob> job) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->threads.empty() && state_->workers > 0) state_->start(state_);
    state_->jobs.push_back(std::move(job));
  }
  state_->calls.ring(kEveryone);
}

bool Team::has_lost_chunks() const { return state_->lost.load(); }

bool Team::help(ChunkedJob& job) { return state_->help(job); }

void Team::wait(const ChunkedJob& job, int64_t done, int64_t nanoseconds) {
  const uint32_t heard = state_->answers.generation();
  if (job.done() > done || job.is_done()) return;
  state_->answers.wait(heard, 0, nanoseconds);
}

bool Team::stop(double seconds) {
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping.store(true);
    threads.swap(state_->threads);
    state_->jobs.clear();
  }
  if (threads.empty()) return !state_->abandoned.load();
  seconds = std::clamp(seconds, 0.0, kLongestStop);
  state_->calls.ring(kEveryone);
  timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  const auto whole = static_cast<time_t>(seconds);
  limit.tv_sec += whole;
  limit.tv_nsec += static_cast<long>((seconds - static_cast<double>(whole)) * 1e9);
  if (limit.tv_nsec >= 1'000'000'000) {
    limit.tv_sec += 1;
    limit.tv_nsec -= 1'000'000'000;
  }
  bool all_ended = true;
  for (pthread_t thread : threads) {
    if (pthread_timedjoin_np(thread, nullptr, &limit) == 0) continue;
    pthread_detach(thread);
    all_ended = false;
  }
  for (auto& id : state_->ids) id.store(0);
  if (!all_ended) {
    state_->abandoned.store(true);
    strike_off(state_.get());  // no fork shall wait for it
  }
  return all_ended;
}

}  // namespace shoal
