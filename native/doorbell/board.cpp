#include "board.h"

namespace shoal {

namespace {

constexpr size_t kLine = 64;

constexpr size_t whole_lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

size_t Board::lane_bytes(uint32_t capacity) {
  return whole_lines(sizeof(Lane) + 2 * capacity * sizeof(Entry));
}

size_t Board::bytes(int workers, uint32_t capacity) {
  return whole_lines(sizeof(Header)) + static_cast<size_t>(workers) * lane_bytes(capacity);
}

// The words are zeros already, which is what their constructors would make of them: a worker that
// attaches to a board in use must not construct them again.
Board::Board(void* memory, int workers, uint32_t capacity, std::unique_ptr<Sleep> work_sleep,
             std::unique_ptr<Sleep> done_sleep, bool may_spin)
    : memory_(static_cast<char*>(memory)),
      workers_(workers),
      capacity_(capacity),
      header_(*static_cast<Header*>(memory)),
      work_(header_.work, std::move(work_sleep), may_spin),
      done_(header_.done, std::move(done_sleep), may_spin),
      taken_(static_cast<size_t>(workers)) {}

Board::Lane& Board::lane(int worker) const {
  return *reinterpret_cast<Lane*>(memory_ + whole_lines(sizeof(Header)) +
                                  static_cast<size_t>(worker) * lane_bytes(capacity_));
}

bool Board::post(int worker, Entry task) {
  Lane& to = lane(worker);
  const uint32_t posted = to.posted.load(std::memory_order_relaxed);
  if (posted - to.next.load(std::memory_order_acquire) == capacity_) return false;
  tasks(to)[posted % capacity_] = task;
  to.posted.store(posted + 1, std::memory_order_release);
  return true;
}

int64_t Board::finished() const {
  int64_t count = 0;
  for (int worker = 0; worker < workers_; ++worker) count += finished(worker);
  return count;
}

bool Board::wait(int64_t slots, int64_t nanoseconds) {
  if (finished() >= slots) return true;
  // `completed` may be behind for a worker that was killed in the middle of `finish`; then the bell
  // stays silent, and the time's end finds the slots. The lanes are what counts.
  header_.target.store(slots_taken() + static_cast<uint32_t>(slots));
  const int64_t until = monotonic_ns() + nanoseconds;
  int64_t left = nanoseconds;
  do {
    const uint32_t seen = done_.generation();
    if (finished() >= slots) return true;
    if (!done_.wait(seen, 0, left)) break;
    left = until - monotonic_ns();
  } while (left > 0);
  return finished() >= slots;
}

bool Board::take(int worker, Entry& outcome) {
  Lane& from = lane(worker);
  uint32_t& taken = taken_[static_cast<size_t>(worker)].outcomes;
  if (from.told.load(std::memory_order_acquire) == taken) return false;
  outcome = outcomes(from)[taken % capacity_];
  ++taken;
  return true;
}

void Board::clear(int worker) {
  Lane& empty = lane(worker);
  Taken& taken = taken_[static_cast<size_t>(worker)];
  empty.next.store(empty.posted.load());
  taken.outcomes = empty.told.load();
  taken.slots = empty.finished.load();
  empty.counted.store(taken.slots);
  unsettled_ = true;
}

void Board::settle() {
  if (!unsettled_) return;
  // A worker that has told of its slots may not yet have counted them; then another time will do.
  for (int worker = 0; worker < workers_; ++worker) {
    const Lane& each = lane(worker);
    if (each.counted.load() != each.finished.load()) return;
  }
  header_.completed.store(slots_taken());
  unsettled_ = false;
}

uint32_t Board::slots_taken() const {
  uint32_t slots = 0;
  for (const Taken& taken : taken_) slots += taken.slots;
  return slots;
}

bool Board::next(int worker, Entry& task) {
  Lane& own = lane(worker);
  const uint32_t next = own.next.load(std::memory_order_relaxed);
  if (own.posted.load(std::memory_order_acquire) == next) return false;
  task = tasks(own)[next % capacity_];
  own.next.store(next + 1, std::memory_order_release);
  return true;
}

void Board::wait_for_task(int worker, int64_t nanoseconds) {
  const uint32_t seen = work_.generation();
  if (has_task(worker)) return;
  work_.wait(seen, worker, nanoseconds);
}

void Board::finish(int worker, Entry outcome, uint32_t slots) {
  Lane& own = lane(worker);
  const uint32_t told = own.told.load(std::memory_order_relaxed);
  outcomes(own)[told % capacity_] = outcome;
  own.told.store(told + 1, std::memory_order_release);
  const uint32_t finished = own.finished.load(std::memory_order_relaxed) + slots;
  own.finished.store(finished);
  const uint32_t before = header_.completed.fetch_add(slots);
  own.counted.store(finished);
  const uint32_t missing = header_.target.load() - before;
  // Whoever takes the count over the target rings, and nobody else does.
  if (missing != 0 && missing <= slots) done_.ring(kEveryone);
}

}  // namespace shoal
