// A non-blocking byte stream between two ends: a socket, or two rings in shared memory.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace shoal {

/// The connection is lost: the other end is gone or has violated the protocol.
struct PipeLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Pipe {
 public:
  virtual ~Pipe() = default;

  /// Reads up to `size` bytes without blocking; returns 0 if none are available. Throws PipeLost.
  virtual size_t read_some(char* target, size_t size) = 0;

  /// Writes as much of these parts as fits without blocking; returns the number of bytes written.
  /// Throws PipeLost.
  virtual size_t write_some(const iovec* parts, int count) = 0;

  /// Sleeps until the pipe may be readable or writable, until a signal arrives, or at most for
  /// `nanoseconds`.
  virtual void sleep(bool to_read, bool to_write, int64_t nanoseconds) = 0;

  /// Gives up ownership of the socket and returns its descriptor, or -1 if there is none. The pipe
  /// is unusable afterwards.
  virtual int release_socket() { return -1; }

  /// Closes the connection for both ends and wakes a thread that sleeps here. Thread-safe.
  virtual void shut_down() = 0;
};

/// Wraps a connected socket and takes ownership of it.
std::unique_ptr<Pipe> make_socket_pipe(int descriptor);

/// The size in bytes of the shared memory for two rings of this capacity.
size_t ring_pipe_bytes(size_t capacity);

/// A pipe over two rings in shared memory, which the caller owns and keeps alive. `end` is 0 for
/// one end and 1 for the other. The pipe takes ownership of `socket`, never writes to it, and polls
/// it to detect the death of the other end.
std::unique_ptr<Pipe> make_ring_pipe(char* memory, size_t capacity, int end, int socket);

}  // namespace shoal
