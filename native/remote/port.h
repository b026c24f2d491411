// One end of a connection, as Python uses it: complete buffers in and out, with timeouts.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../doorbell/spin.h"
#include "../python/object.h"
#include "pipe.h"

namespace shoal {

/// One thread receives, and one thread at a time sends; any thread may close.
class Port {
 public:
  Port(std::unique_ptr<Pipe> pipe, std::string name, bool may_spin, double stall_timeout);

  /// Sends these buffers in order. With `reads`, incoming bytes are buffered while the pipe is
  /// full, because the other end may be blocked until they are read.
  void send(nb::sequence parts, bool reads);

  /// Waits for `needed` bytes and returns them without consuming them; None after the timeout.
  nb::object peek(size_t needed, std::optional<double> seconds);

  /// Consumes `count` bytes that peek() returned.
  void skip(size_t count);

  /// Fills these buffers.
  void receive_into(nb::sequence buffers);

  /// Switches to two rings of this capacity in shared memory. The socket stays open to detect the
  /// death of the other end. No thread may be sending or receiving.
  void share(nb::handle memory, size_t capacity, int end);

  /// Closes the connection for both ends; a second call does nothing.
  void close();

  /// Releases the socket in a forked child without closing the connection of the parent.
  void release_in_child();

  // For native callers, with the GIL held.

  /// Sends these parts in order.
  void send_parts(std::vector<iovec> parts, bool reads = true);

  /// Waits for `needed` bytes and returns a pointer to them, valid until the next call; null after
  /// the timeout.
  const char* await_bytes(size_t needed, std::optional<double> seconds);

  /// Fills these parts.
  void receive_parts(const std::vector<iovec>& parts);

  /// Seconds without progress in the middle of a message after which the connection is lost.
  double stall_timeout() const { return static_cast<double>(stall_timeout_) / 1e9; }
  void set_stall_timeout(double seconds) { stall_timeout_ = static_cast<int64_t>(seconds * 1e9); }

  bool is_shared() const { return static_cast<bool>(memory_); }
  const std::string& name() const { return name_; }
  uint64_t bytes_sent() const { return sent_; }
  uint64_t bytes_received() const { return received_; }

 private:
  class PipeCall;

  size_t buffered() const { return end_ - start_; }
  void make_room(size_t needed);
  bool fill_once(Pipe& pipe);
  bool await(Pipe& pipe, size_t needed, int64_t deadline);
  void write_all(Pipe& pipe, std::vector<iovec> parts, bool reads);
  void read_all(Pipe& pipe, char* target, size_t size, int64_t deadline);
  [[noreturn]] void raise_lost(const std::string& reason) const;

  std::mutex lock_;             // protects pipe_
  std::shared_ptr<Pipe> pipe_;  // null after close()
  const std::string name_;
  std::atomic<int64_t> stall_timeout_;  // nanoseconds
  SpinPolicy policy_;
  std::vector<char> buffer_;  // received and not yet consumed: bytes [start_, end_)
  size_t start_ = 0, end_ = 0;
  Ref memory_;  // the shared memory of the rings
  std::atomic<uint64_t> sent_{0}, received_{0};
};

}  // namespace shoal
