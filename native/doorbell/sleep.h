// Lets a thread sleep until another thread, possibly of another process, wakes it.
//
// There are two implementations: a futex on a word of shared memory, and pipes for systems without
// futexes. Wake-ups may be spurious, so a sleeper must check its condition again.
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

  /// Sleeps as the sleeper with this number while `word` is `expected`, until woken or until the
  /// time is over. Returns false if a signal interrupted it.
  virtual bool sleep(Word& word, uint32_t expected, int sleeper, int64_t nanoseconds) = 0;

  /// Wakes one sleeper, or all with `kEveryone`. Other sleepers may wake up as well.
  virtual void wake(Word& word, int sleeper) = 0;
};

/// Makes a sleep on a futex: one system call wakes all sleepers of a word, or one by its bit.
std::unique_ptr<Sleep> make_futex_sleep();

/// Makes a sleep on a pipe for each sleeper, in which a byte is a wake-up. The caller keeps
/// ownership of the descriptors; -1 stands for an end that this process never uses.
std::unique_ptr<Sleep> make_pipe_sleep(std::vector<int> read_ends, std::vector<int> write_ends);

/// Whether this system has futexes.
bool has_futex();

}  // namespace shoal
