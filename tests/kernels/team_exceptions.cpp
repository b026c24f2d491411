// A thread team whose jobs throw: the process survives, the caller receives the exception once, and
// the team and later forks work as before.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "../../native/doorbell/spin.h"
#include "../../native/threads/team.h"

namespace {

using namespace shoal;

constexpr int64_t kChunks = 64;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

class FunctionJob final : public ChunkedJob {
 public:
  FunctionJob(std::function<void(int64_t)> function, bool first_come, int participants)
      : ChunkedJob(kChunks, first_come, participants), function_(std::move(function)) {}

  int64_t runs() const { return runs_.load(); }

 protected:
  void run(int64_t chunk) override {
    runs_.fetch_add(1);
    function_(chunk);
  }

 private:
  const std::function<void(int64_t)> function_;
  std::atomic<int64_t> runs_{0};
};

void sleep_briefly() {
  const timespec duration{0, 200'000};
  nanosleep(&duration, nullptr);
}

/// Waits for a job as KernelRunner does. Returns the message of the exception that it received.
std::string finish(Team& team, FunctionJob& job, bool helps = true) {
  std::string message;
  while (!job.is_done()) {
    const int64_t done = job.done();
    try {
      if (!helps || !team.help(job)) team.wait(job, done, 10'000'000);
    } catch (const std::exception& error) {
      CHECK(message.empty());
      CHECK(job.done() == kChunks);
      message = error.what();
    }
  }
  CHECK(job.runs() == kChunks);
  return message;
}

std::string run_job(Team& team, std::function<void(int64_t)> function, bool first_come,
                    bool helps = true) {
  const auto job =
      std::make_shared<FunctionJob>(std::move(function), first_come, team.workers() + 1);
  team.post(job);
  return finish(team, *job, helps);
}

void check_team_works(Team& team) {
  for (const bool first_come : {false, true}) {
    CHECK(run_job(team, [](int64_t) {}, first_come).empty());
  }
}

void check_fork_does_not_stall(Team& team) {
#if defined(__SANITIZE_THREAD__)
  static_cast<void>(team);  // ThreadSanitizer does not support threads after a fork
#else
  const int64_t start = monotonic_ns();
  const pid_t child = fork();
  if (child == 0) {
    check_team_works(team);
    _exit(team.has_lost_chunks() ? 3 : 0);
  }
  CHECK(monotonic_ns() - start < 900'000'000);  // a fork waits a second for running chunks
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  check_team_works(team);
#endif
}

/// A chunk throws on a worker thread: the caller only waits.
void worker_throws(Team& team, bool first_come) {
  for (const int64_t thrower : {int64_t{0}, kChunks / 2, kChunks - 1}) {
    const std::string message = run_job(
        team,
        [thrower](int64_t chunk) {
          sleep_briefly();
          if (chunk == thrower) throw std::runtime_error("chunk " + std::to_string(chunk));
        },
        first_come, false);
    CHECK(message == "chunk " + std::to_string(thrower));
  }
}

/// A chunk throws on the calling thread: the job is never posted.
void caller_throws(Team& team, bool first_come) {
  FunctionJob job(
      [](int64_t chunk) {
        if (chunk == 3) throw std::runtime_error("of the caller");
      },
      first_come, 1);
  CHECK(finish(team, job) == "of the caller");
}

/// Every chunk throws, on all threads at the same time.
void everything_throws(Team& team, bool first_come) {
  const std::string message =
      run_job(team, [](int64_t) { throw std::runtime_error("everywhere"); }, first_come);
  CHECK(message == "everywhere");
}

/// An exception that is not a std::exception.
void other_type_is_thrown(Team& team) {
  const auto job = std::make_shared<FunctionJob>(
      [](int64_t chunk) {
        if (chunk == kChunks - 1) throw 42;
      },
      false, team.workers() + 1);
  team.post(job);
  int caught = 0;
  while (!job->is_done()) {
    const int64_t done = job->done();
    try {
      if (!team.help(*job)) team.wait(*job, done, 10'000'000);
    } catch (int number) {
      CHECK(caught == 0);
      caught = number;
    }
  }
  CHECK(caught == 42);
}

/// A job with an exception is cancelled: the chunks that were not claimed count as done.
void cancelled_job_throws(Team& team) {
  FunctionJob job([](int64_t) { throw std::runtime_error("before the end"); }, false, 1);
  CHECK(team.help(job));
  CHECK(!job.is_done());
  job.cancel();
  CHECK(!job.is_done());
  std::string message;
  try {
    team.help(job);
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK(message == "before the end");
  CHECK(job.is_done());
  CHECK(job.runs() == 1);
}

/// A job whose exception is never fetched does no harm.
void job_is_dropped(Team& team) {
  team.post(std::make_shared<FunctionJob>([](int64_t) { throw std::runtime_error("dropped"); },
                                          false, team.workers() + 1));
  check_team_works(team);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const int rounds = std::atoi(arguments[1]), workers = std::atoi(arguments[2]);
  const bool may_spin = std::strcmp(arguments[3], "spin") == 0;
  CHECK(workers > 0);
  Team team(workers, {}, may_spin);
  for (int round = 0; round < rounds; ++round) {
    for (const bool first_come : {false, true}) {
      worker_throws(team, first_come);
      check_fork_does_not_stall(team);
      caller_throws(team, first_come);
      check_fork_does_not_stall(team);
      everything_throws(team, first_come);
      check_fork_does_not_stall(team);
    }
    other_type_is_thrown(team);
    cancelled_job_throws(team);
    job_is_dropped(team);
    check_fork_does_not_stall(team);
  }
  CHECK(team.stop(10.0));
  std::printf("%d rounds with %d workers\n", rounds, workers);
  return 0;
}
