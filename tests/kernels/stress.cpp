// Stress test of engine, jobs and threads without Python, for sanitizers: many rounds, stepped at
// once and in groups, compared with the same rounds without threads.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../../native/kernels/builtin_kernels.h"
#include "../../native/kernels/jobs.h"

namespace {

using namespace shoal;

constexpr int64_t kSlots = 700;

/// A vector with the columns that Python would provide.
struct Vector {
  explicit Vector(const shoal_kernel& kernel, int workers, bool may_spin)
      : finished(kSlots),
        returns(kSlots),
        lengths(kSlots),
        starts(kSlots),
        actions(kSlots),
        engine(std::make_shared<Engine>(
            kernel, EngineOptions{kSlots, Autoreset::kSameStep, true, false, 40, Generator::kPcg64},
            SlotColumns{finished.data(), returns.data(), lengths.data(), starts.data()},
            std::vector<char*>{reinterpret_cast<char*>(actions.data())}, defaults(kernel))),
        team(workers, {}, may_spin) {}

  static std::vector<double> defaults(const shoal_kernel& kernel) {
    std::vector<double> values;
    for (int k = 0; k < kernel.parameter_count; ++k) values.push_back(kernel.parameters[k].value);
    return values;
  }

  void finish(const std::shared_ptr<SlotJob>& job) {
    while (!job->is_done()) {
      if (!team.help(*job)) team.wait(*job, job->done(), 1'000'000);
    }
  }

  void reset() {
    auto reset = std::make_unique<SlotJob::Reset>();
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      reset->seeds.words.push_back(slot);
      reset->seeds.ends.push_back(reset->seeds.words.size());
    }
    for (int k = 0; k < engine->kernel().option_count; ++k) {
      reset->options.push_back(engine->kernel().options[k].value);
    }
    auto job = std::make_shared<SlotJob>(engine, std::vector<int64_t>{}, engine->result_buffer(),
                                         std::move(reset), 16, false, team.workers() + 1);
    team.post(job);
    finish(job);
  }

  void choose(int round) {
    for (int64_t slot = 0; slot < kSlots; ++slot) actions[slot] = (slot * 7 + round * 3) % 5 % 2;
  }

  void step(int round) {
    choose(round);
    auto job = std::make_shared<SlotJob>(engine, std::vector<int64_t>{}, engine->result_buffer(),
                                         nullptr, 16, false, team.workers() + 1);
    team.post(job);
    finish(job);
  }

  /// Steps three groups of slots that are in flight at the same time.
  void step_in_groups(int round) {
    choose(round);
    std::vector<std::shared_ptr<SlotJob>> jobs;
    for (int64_t group = 0; group < 3; ++group) {
      std::vector<int64_t> slots;
      for (int64_t slot = group; slot < kSlots; slot += 3) slots.push_back(slot);
      jobs.push_back(std::make_shared<SlotJob>(engine, std::move(slots), engine->result_buffer(),
                                               nullptr, 8, true, 2));
      team.post(jobs.back());
    }
    size_t received = 0;
    for (const auto& job : jobs) {
      int64_t place = 0;
      while (place < job->chunk_count()) {
        const int64_t chunk = job->finished_chunk(place);
        if (chunk < 0) {
          if (!team.help(*job)) team.wait(*job, job->done(), 1'000'000);
          continue;
        }
        std::vector<int64_t> slots;
        job->append_slots(chunk, slots);
        received += slots.size();
        ++place;
      }
      finish(job);
    }
    if (received != kSlots) std::abort();
  }

  double total() const {
    double sum = 0.0;
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      sum += engine->result_buffer().rewards[slot] + static_cast<double>(lengths[slot]) * 1e-3;
      float first;
      std::memcpy(&first, engine->result_buffer().observations[0] + slot * 16, sizeof first);
      sum += first;
    }
    return sum;
  }

  std::vector<uint8_t> finished;
  std::vector<double> returns;
  std::vector<int64_t> lengths;
  std::vector<double> starts;
  std::vector<int64_t> actions;
  std::shared_ptr<Engine> engine;
  Team team;
};

bool forked_child_continues(Vector& vector, int round) {
  const pid_t child = fork();
  if (child == 0) {
    vector.step(round);
    vector.step_in_groups(round + 1);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const int rounds = std::atoi(arguments[1]), workers = std::atoi(arguments[2]);
  const bool may_spin = std::strcmp(arguments[3], "spin") == 0;
#if defined(__SANITIZE_THREAD__)
  const bool forks = false;  // ThreadSanitizer does not support threads after a fork
#else
  const bool forks = true;
#endif
  Vector alone(kCartPole, 0, false), shared(kCartPole, workers, may_spin);
  alone.reset();
  shared.reset();
  for (int round = 0; round < rounds; ++round) {
    alone.step(round);
    if (round % 2 == 0) {
      shared.step(round);
    } else {
      shared.step_in_groups(round);
    }
    if (alone.total() != shared.total()) {
      std::fprintf(stderr, "round %d differs\n", round);
      return 1;
    }
    if (forks && round % 500 == 250 && !forked_child_continues(shared, round)) {
      std::fprintf(stderr, "a forked child failed in round %d\n", round);
      return 1;
    }
  }
  if (!shared.team.stop(10.0)) return 1;
  std::printf("%d rounds with %d workers\n", rounds, workers);
  return 0;
}
