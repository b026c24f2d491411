// How a thread sleeps until another one, perhaps of another process, wakes it.
//
// Two ways behind one interface: a futex on a word of shared memory, and pipes for systems without
// futexes. A sleeper may always wake up for no reason, and looks again at what it waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace shoal {

using Word = std::atomic<uint32_t>;
static_assert(Word::is_always_lock_free, "words are shared between processes");

constexpr int kEveryone = -1;

class Sleep {
 public:
  virtual ~Sleep() = default;

  /// Sleeps as sleeper number `who` while `word` is `expected`, until woken or until the time is
  /// over. Returns false if a signal interrupted it.
  virtual bool sleep(Word& word, uint32_t expected, int who, int64_t nanoseconds) = 0;

  /// Wakes one sleeper, or everyone. Sleepers that were not meant may wake up as well.
  virtual void wake(Word& word, int who) = 0;
};

/// One system call wakes everyone who waits on a word; a bit for each sleeper singles one out.
std::unique_ptr<Sleep> make_futex_sleep();

/// A pipe for each sleeper, in which a byte is a wake-up. Descriptors stay the caller's; -1 stands
/// for an end that this process never uses.
std::unique_ptr<Sleep> make_pipe_sleep(std::vector<int> read_ends, std::vector<int> write_ends);

/// Whether this system has futexes.
bool has_futex();

}  // namespace shoal
