// What moves bytes between two ends, one at each: neither reading nor writing ever waits.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace shoal {

/// The other end is gone, or has broken the rules: nothing more will come.
struct PipeLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Pipe {
 public:
  virtual ~Pipe() = default;

  /// Reads what there is, at most so much; 0 if there is nothing now. Throws PipeLost.
  virtual size_t read_some(char* target, size_t size) = 0;

  /// Writes as much of these parts as there is room for; 0 if there is none now. Throws PipeLost.
  virtual size_t write_some(const iovec* parts, int count) = 0;

  /// Sleeps until there may be something to read, or room to write; at most so long, and not
  /// longer than until a signal comes.
  virtual void sleep(bool to_read, bool to_write, int64_t nanoseconds) = 0;

  /// Gives up its socket, if it is one; it is of no use any more then.
  virtual int release_socket() { return -1; }

  /// Ends the connection for both ends, and wakes who sleeps here; may be called by any thread.
  virtual void shut_down() = 0;
};

/// A connected socket, which it owns.
std::unique_ptr<Pipe> make_socket_pipe(int descriptor);

/// Bytes of the shared memory that two rings of this capacity need.
size_t ring_pipe_bytes(size_t capacity);

/// Two rings in shared memory, which stay the caller's; `end` is 0 for one of them and 1 for the
/// other. By the socket, which it owns and never writes to, it notices that the other end is gone.
std::unique_ptr<Pipe> make_ring_pipe(char* memory, size_t capacity, int end, int socket);

}  // namespace shoal
