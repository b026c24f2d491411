// An end of a connection as Python sees it: whole buffers in and out, and no wait without an end.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../doorbell/spin.h"
#include "../python/object.h"
#include "pipe.h"
#include "trays.h"

namespace shoal {

/// One thread receives, one thread at a time sends; any may close.
class Port {
 public:
  Port(std::unique_ptr<Pipe> pipe, std::string name, bool may_spin, double patience);

  /// Sends these buffers, one after the other. While nothing is taken, what has come is read ahead
  /// if `reads`, since the other end may wait for that.
  void send(nb::sequence parts, bool reads);

  /// Waits for so many bytes and returns them, without taking them; None when the time is over.
  nb::object peek(size_t needed, std::optional<double> seconds);

  /// Drops so many bytes that were peeked at.
  void skip(size_t count);

  /// Fills these buffers.
  void receive_into(nb::sequence buffers);

  /// Goes on over shared memory: two rings of this capacity, and behind them so many bytes of
  /// trays. The socket stays, to tell whether the other end is there. Nobody may be receiving or
  /// sending.
  void share(nb::handle memory, size_t capacity, size_t trays, int end);

  /// Bytes of shared memory for that.
  static size_t shared_bytes(size_t capacity, size_t trays);

  /// Ends the connection for both ends; a second call does nothing.
  void close();

  /// Lets go of it in a forked child, without ending it for the parent.
  void abandon();

  // For native callers, with the GIL held.

  /// Sends these parts, one after the other.
  void send_parts(std::vector<iovec> parts, bool reads = true);

  /// Waits for so many bytes, and shows them until the next call; null when the time is over.
  const char* await_bytes(size_t needed, std::optional<double> seconds);

  /// Fills these parts.
  void receive_parts(const std::vector<iovec>& parts);

  /// The trays in shared memory, if there are some.
  const TrayArea& trays() const { return trays_; }

  /// Seconds without a byte, in the middle of a message, after which the other end is lost.
  double patience() const { return static_cast<double>(patience_) / 1e9; }
  void set_patience(double seconds) { patience_ = static_cast<int64_t>(seconds * 1e9); }

  bool is_shared() const { return static_cast<bool>(memory_); }
  const std::string& name() const { return name_; }
  uint64_t bytes_sent() const { return sent_; }
  uint64_t bytes_received() const { return received_; }

 private:
  class Use;

  size_t ahead() const { return end_ - start_; }
  void make_room(size_t needed);
  bool fill_once(Pipe& pipe);
  bool await(Pipe& pipe, size_t needed, int64_t deadline);
  void write_all(Pipe& pipe, std::vector<iovec> parts, bool reads);
  void read_all(Pipe& pipe, char* target, size_t size, int64_t deadline);
  [[noreturn]] void lost(const std::string& what) const;

  std::mutex lock_;             // of the three below
  std::shared_ptr<Pipe> pipe_;  // null once it is closed
  const std::string name_;
  std::atomic<int64_t> patience_;
  SpinPolicy policy_;
  std::vector<char> buffer_;  // what was received ahead lies from start_ to end_
  size_t start_ = 0, end_ = 0;
  Ref memory_;  // that is shared
  TrayArea trays_;
  std::atomic<uint64_t> sent_{0}, received_{0};
};

}  // namespace shoal
