// A lock that refuses a second caller instead of blocking it.
#pragma once

#include <atomic>

#include "object.h"

namespace shoal {

[[noreturn]] inline void raise_in_use() {
  raise(PyExc_RuntimeError,
        "the vector environment is already being stepped, by another thread or from within one of "
        "its environments");
}

/// A context manager for Python. Entering and leaving are native, so no signal handler can run
/// between the change of the lock and the start or end of the block.
class ExclusiveUse {
 public:
  void enter() {
    if (in_use_.exchange(true)) raise_in_use();
  }
  void exit() { in_use_.store(false); }

 private:
  std::atomic<bool> in_use_{false};
};

}  // namespace shoal
