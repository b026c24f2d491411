// Runs rounds between a caller and its workers over a board at full speed, and checks that every
// task is executed once and that no wake-up is lost. Usage: stress ROUNDS WORKERS futex|pipe
// spin|sleep
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../../native/doorbell/board.h"

using namespace shoal;

namespace {

constexpr uint32_t kCapacity = 64;
constexpr Entry kLast = 1u << 30;
constexpr int64_t kSecond = 1'000'000'000;

struct Memory {
  explicit Memory(size_t bytes)
      : block(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free) {
    std::memset(block.get(), 0, bytes);
  }
  std::unique_ptr<char, decltype(&std::free)> block;
};

struct Pipes {
  explicit Pipes(int count) {
    for (int k = 0; k < count; ++k) {
      int ends[2];
      if (pipe(ends) != 0) std::abort();
      reads.push_back(ends[0]);
      writes.push_back(ends[1]);
    }
  }
  std::vector<int> reads, writes;
};

[[noreturn]] void fail(const char* what, long round) {
  std::fprintf(stderr, "%s in round %ld\n", what, round);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const long rounds = std::atol(argv[1]);
  const int workers = std::atoi(argv[2]);
  const bool by_pipe = std::string(argv[3]) == "pipe";
  const bool may_spin = std::string(argv[4]) == "spin";

  Memory memory(Board::bytes(workers, kCapacity));
  Pipes work(by_pipe ? workers : 0), done(by_pipe ? 1 : 0);
  auto make_board = [&] {
    auto sleep = [&](const Pipes& pipes) {
      return by_pipe ? make_pipe_sleep(pipes.reads, pipes.writes) : make_futex_sleep();
    };
    return std::make_unique<Board>(memory.block.get(), workers, kCapacity, sleep(work), sleep(done),
                                   may_spin);
  };

  // Plain memory, like the rows of an arena: only the board synchronizes it.
  std::vector<long> actions(static_cast<size_t>(workers)), results(static_cast<size_t>(workers));
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const auto board = make_board();
      for (;;) {
        Entry task;
        while (!board->next(worker, task)) board->wait_for_task(worker, 10 * kSecond);
        if (task == kLast) return;
        const auto own = static_cast<size_t>(worker);
        results[own] = 2 * actions[own] + task;
        board->start(worker, task);
        board->finish(worker, task, 1);
      }
    });
  }

  const auto board = make_board();
  for (long round = 0; round < rounds; ++round) {
    board->correct_count();
    for (int worker = 0; worker < workers; ++worker) {
      actions[static_cast<size_t>(worker)] = round + worker;
      if (!board->post(worker, static_cast<Entry>(worker))) fail("a full lane", round);
    }
    // Every third round rings worker by worker, as `send` does.
    if (round % 3 == 0) {
      for (int worker = 0; worker < workers; ++worker) board->ring(worker);
    } else {
      board->ring(kEveryone);
    }
    // A wait whose wake-up was lost succeeds after a timeout, so its duration is checked too.
    const int64_t start = monotonic_ns();
    if (!board->wait(workers, 20 * kSecond)) fail("a lost wake-up", round);
    if (monotonic_ns() - start > 9 * kSecond) fail("a late wake-up", round);
    for (int worker = 0; worker < workers; ++worker) {
      Entry outcome;
      if (!board->take(worker, outcome) || outcome != static_cast<Entry>(worker)) {
        fail("a wrong outcome", round);
      }
      board->add_taken(worker, 1);
      const long expected = 2 * (round + worker) + worker;
      if (results[static_cast<size_t>(worker)] != expected) fail("a wrong result", round);
      if (board->take(worker, outcome)) fail("an outcome too many", round);
    }
  }
  for (int worker = 0; worker < workers; ++worker) board->post(worker, kLast);
  board->ring(kEveryone);
  for (std::thread& thread : threads) thread.join();
  std::printf("%ld rounds with %d workers\n", rounds, workers);
  return 0;
}
