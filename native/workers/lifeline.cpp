#include "lifeline.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace shoal {

namespace {

[[noreturn]] void end_everything() {
  // A worker leads a process group, which contains the processes of its environments.
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(1);
}

/// Waits for the end of a process by its pidfd; returns false if the system has no pidfds.
bool wait_for_end(int parent) {
#if defined(__linux__) && defined(SYS_pidfd_open)
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd waiting{descriptor, POLLIN, 0};
  while (poll(&waiting, 1, -1) < 0) {
  }
  return true;
#else
  (void)parent;
  return false;
#endif
}

}  // namespace

void start_lifeline(int parent, bool dies_with_thread) {
#ifdef __linux__
  if (dies_with_thread) prctl(PR_SET_PDEATHSIG, SIGKILL);
#else
  (void)dies_with_thread;
#endif
  std::thread([parent] {
    if (!wait_for_end(parent)) {
      while (kill(parent, 0) == 0 || errno == EPERM) usleep(200'000);
    }
    end_everything();
  }).detach();
}

}  // namespace shoal
