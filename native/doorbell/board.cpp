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

// The words are not constructed here: the memory starts out as zeros, which is their initial state,
// and a worker may attach to a board that is in use.
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
  // `completed` is too low if a worker was killed inside `finish`. Then nothing rings, and the
  // slots are found after the timeout, since the lanes are authoritative.
  header_.target.store(slots_taken() + static_cast<uint32_t>(slots));
  const int64_t deadline = monotonic_ns() + nanoseconds;
  int64_t remaining = nanoseconds;
  do {
    const uint32_t seen = done_.generation();
    if (finished() >= slots) return true;
    if (!done_.wait(seen, 0, remaining)) break;
    remaining = deadline - monotonic_ns();
  } while (remaining > 0);
  return finished() >= slots;
}

bool Board::take(int worker, Entry& outcome) {
  Lane& from = lane(worker);
  uint32_t& taken = taken_[static_cast<size_t>(worker)].outcomes;
  if (from.reported.load(std::memory_order_acquire) == taken) return false;
  outcome = outcomes(from)[taken % capacity_];
  ++taken;
  return true;
}

void Board::clear(int worker) {
  Lane& cleared = lane(worker);
  Taken& taken = taken_[static_cast<size_t>(worker)];
  cleared.next.store(cleared.posted.load());
  taken.outcomes = cleared.reported.load();
  taken.slots = cleared.finished.load();
  cleared.counted.store(taken.slots);
  may_be_miscounted_ = true;
}

void Board::correct_count() {
  if (!may_be_miscounted_) return;
  // A worker may have reported slots that it has not counted yet; then a later call corrects it.
  for (int worker = 0; worker < workers_; ++worker) {
    const Lane& each = lane(worker);
    if (each.counted.load() != each.finished.load()) return;
  }
  header_.completed.store(slots_taken());
  may_be_miscounted_ = false;
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
  const uint32_t reported = own.reported.load(std::memory_order_relaxed);
  outcomes(own)[reported % capacity_] = outcome;
  own.reported.store(reported + 1, std::memory_order_release);
  const uint32_t finished = own.finished.load(std::memory_order_relaxed) + slots;
  own.finished.store(finished);
  const uint32_t before = header_.completed.fetch_add(slots);
  own.counted.store(finished);
  const uint32_t missing = header_.target.load() - before;
  // Only the worker whose slots take the count to the target rings.
  if (missing != 0 && missing <= slots) done_.ring(kEveryone);
}

}  // namespace shoal
