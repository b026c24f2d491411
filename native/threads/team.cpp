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
#include <utility>

#include "../doorbell/bell.h"

namespace shoal {

namespace {

constexpr int64_t kLongestSleep = 1'000'000'000;
constexpr int64_t kForkTimeout = 1'000'000'000;
constexpr double kLongestStop = 1e6;

/// The number of chunks that the current thread is running; positive if a kernel calls fork.
thread_local int chunks_inside = 0;

void nap() {
  const timespec duration{0, 20'000};
  nanosleep(&duration, nullptr);
}

/// A spinlock that is held for a few instructions. All threads want it at the same moment, and
/// waking a sleeping thread would take longer than the wait. A forked child can unlock it.
class SpinLock {
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

void ChunkedJob::run_guarded(int64_t chunk) noexcept {
  try {
    run(chunk);
  } catch (...) {
    if (!has_error_.exchange(true)) error_ = std::current_exception();
  }
  // The catch block has ended: this thread no longer uses the exception, and the addition to
  // `done_` that follows publishes it.
}

void ChunkedJob::rethrow_error() {
  if (!has_ended() || !has_error_.load()) return;
  has_error_.store(false);
  std::rethrow_exception(std::exchange(error_, nullptr));
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
  std::vector<std::atomic<pid_t>> ids;  // the system's thread IDs; 0: not started

  BellWords call_words, answer_words;
  Bell calls;    // rung for new jobs; each worker waits with a separate Bell over the same words
  Bell answers;  // rung for finished chunks; the caller waits for it

  alignas(64) SpinLock mutex;
  std::deque<std::shared_ptr<ChunkedJob>> jobs;  // jobs that may have unclaimed chunks
  std::vector<pthread_t> threads;

  std::atomic<bool> stopping{false};
  std::atomic<bool> paused{false};
  std::atomic<int> inside{0};          // threads that are inside a chunk or about to enter one
  std::atomic<bool> abandoned{false};  // a detached thread may be inside a chunk forever
  std::atomic<bool> lost{false};       // chunks were running when this process was forked

  /// The oldest job with unclaimed chunks.
  std::shared_ptr<ChunkedJob> next() {
    const std::lock_guard lock(mutex);
    while (!jobs.empty() && !jobs.front()->has_unclaimed()) jobs.pop_front();
    return jobs.empty() ? nullptr : jobs.front();
  }

  /// Marks the current thread as inside a chunk, for as long as the object lives. Waits first
  /// while a fork is in progress.
  class Inside {
   public:
    explicit Inside(State& state) : state_(state) {
      for (;;) {
        state_.inside.fetch_add(1);
        if (!state_.paused.load() || chunks_inside > 0) break;
        state_.inside.fetch_sub(1);
        nap();
      }
      ++chunks_inside;
    }
    ~Inside() {
      --chunks_inside;
      state_.inside.fetch_sub(1);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    State& state_;
  };

  /// Works on a chunk. Returns false if no chunk is left to claim.
  bool run_next(ChunkedJob& job, int participant) noexcept {
    const int64_t chunk = job.claim(participant);
    if (chunk < 0) return false;
    job.run_guarded(chunk);
    const int64_t done = job.done_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (job.first_come_ || done == job.chunks_) answers.ring(kEveryone);
    return true;
  }

  bool help(ChunkedJob& job) {
    bool claimed;
    {
      const Inside inside_chunk(*this);
      claimed = run_next(job, workers);
    }
    job.rethrow_error();
    return claimed;
  }

  void work(int number) {
    ids[static_cast<size_t>(number)].store(gettid());
    Bell call(call_words, make_futex_sleep(), may_spin);
    for (;;) {
      const uint32_t seen = call.generation();
      if (stopping.load()) return;
      if (const std::shared_ptr<ChunkedJob> job = next()) {
        const Inside inside_chunk(*this);
        while (!stopping.load() && !paused.load() && run_next(*job, number)) {
        }
      } else {
        call.wait(seen, number, kLongestSleep);
      }
    }
  }

  void start(const std::shared_ptr<State>& self);
};

namespace {

/// All teams of this process; the fork handlers need them.
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
    // A kernel that forks is inside a chunk itself and must not wait for that chunk.
    const int64_t deadline = monotonic_ns() + kForkTimeout;
    while (chunks_inside == 0 && team->inside.load() > 0 && monotonic_ns() < deadline) nap();
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
    // Only the forking thread exists in the child: no workers and no sleepers.
    team->mutex.unlock();
    team->threads.clear();
    for (auto& id : team->ids) id.store(0);
    team->call_words.sleepers.store(0);
    team->answer_words.sleepers.store(0);
    const int inside = chunks_inside > 0 ? 1 : 0;
    if (team->inside.load() > inside) team->lost.store(true);
    team->inside.store(inside);
    team->paused.store(false);
  }
  new (&registry().mutex) std::mutex;
}

void register_team(Team::State* team) {
  static const int status = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (status != 0) throw std::system_error(status, std::generic_category());
  const std::lock_guard lock(registry().mutex);
  registry().teams.push_back(team);
}

void unregister_team(Team::State* team) {
  const std::lock_guard lock(registry().mutex);
  auto& teams = registry().teams;
  teams.erase(std::remove(teams.begin(), teams.end(), team), teams.end());
}

struct ThreadArgument {
  std::shared_ptr<Team::State> state;
  int number;
};

void* run_thread(void* pointer) {
  const std::unique_ptr<ThreadArgument> argument(static_cast<ThreadArgument*>(pointer));
  try {
    argument->state->work(argument->number);
  } catch (...) {
    // Out of memory before the first chunk: the other participants claim this worker's chunks.
  }
  return nullptr;
}

/// Blocks all signals in the current thread, and in threads that it starts meanwhile.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_;
};

void bind_to_core(pthread_t thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

}  // namespace

void Team::State::start(const std::shared_ptr<State>& self) {
  threads.reserve(static_cast<size_t>(workers));  // push_back below must not throw
  const BlockedSignals blocked;                   // signals must reach a thread of Python
  while (static_cast<int>(threads.size()) < workers) {
    const int number = static_cast<int>(threads.size());
    auto argument = std::make_unique<ThreadArgument>(ThreadArgument{self, number});
    pthread_t thread;
    // If the system refuses more threads, the others and the caller do the work.
    if (pthread_create(&thread, nullptr, run_thread, argument.get()) != 0) break;
    static_cast<void>(argument.release());  // owned by the thread now
    if (!cores.empty()) bind_to_core(thread, cores[static_cast<size_t>(number) % cores.size()]);
    threads.push_back(thread);
  }
}

Team::Team(int workers, std::vector<int> cores, bool may_spin)
    : state_(std::make_shared<State>(workers, std::move(cores), may_spin)) {
  register_team(state_.get());
}

Team::~Team() {
  stop(0.0);
  unregister_team(state_.get());
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

void Team::wait(ChunkedJob& job, int64_t done, int64_t nanoseconds) {
  const uint32_t seen = state_->answers.generation();
  if (job.done() <= done && !job.has_ended()) state_->answers.wait(seen, 0, nanoseconds);
  job.rethrow_error();
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
    unregister_team(state_.get());  // forks must not wait for it
  }
  return all_ended;
}

}  // namespace shoal
