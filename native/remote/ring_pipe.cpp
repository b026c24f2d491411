#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "../doorbell/bell.h"
#include "pipe.h"

namespace shoal {

namespace {

constexpr int64_t kCheckInterval = 10'000'000;  // nanoseconds between polls of the socket
constexpr size_t kChunk = 1 << 17;  // bytes that are published at once, so that reading overlaps

/// The counters of one ring: bytes written and read since the start. Each only grows and has a
/// single writer.
struct alignas(64) RingCounters {
  std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
};

/// The start of the shared memory; the bytes of ring 0, then those of ring 1, follow.
struct Shared {
  RingCounters rings[2];  // end k writes ring k
  BellWords bells[2];     // end k waits at bell k
  std::atomic<uint32_t> is_closed{0};
};

class RingPipe : public Pipe {
 public:
  RingPipe(char* memory, size_t capacity, int end, int socket)
      : shared_(*reinterpret_cast<Shared*>(memory)),
        capacity_(capacity),
        out_(shared_.rings[end]),
        in_(shared_.rings[1 - end]),
        out_bytes_(memory + sizeof(Shared) + static_cast<size_t>(end) * capacity),
        in_bytes_(memory + sizeof(Shared) + static_cast<size_t>(1 - end) * capacity),
        own_bell_(shared_.bells[end], make_futex_sleep(), false),
        peer_bell_(shared_.bells[1 - end], make_futex_sleep(), false),
        socket_(socket) {}
  ~RingPipe() override {
    if (socket_ >= 0) ::close(socket_);
  }

  size_t read_some(char* target, size_t size) override {
    const uint64_t begin = in_.read.load(std::memory_order_relaxed);
    const size_t available = used(in_.written.load(std::memory_order_acquire), begin);
    if (available == 0) {
      if (shared_.is_closed.load(std::memory_order_acquire) != 0 && is_drained(begin)) {
        throw PipeLost("the other end has closed the connection");
      }
      check_peer();
      return 0;
    }
    const size_t count = std::min({size, available, kChunk});
    const size_t offset = static_cast<size_t>(begin % capacity_);
    const size_t first = std::min(count, capacity_ - offset);
    std::memcpy(target, in_bytes_ + offset, first);
    std::memcpy(target + first, in_bytes_, count - first);
    in_.read.store(begin + count);
    // Only a writer that found the ring full waits for room. It may already have written into the
    // bytes that were just read, so `written - begin` can exceed the capacity here.
    if (in_.written.load() - begin + kChunk > capacity_) peer_bell_.ring(kEveryone);
    return count;
  }

  int release_socket() override { return std::exchange(socket_, -1); }

  size_t write_some(const iovec* parts, int count) override {
    check_peer();
    if (shared_.is_closed.load(std::memory_order_acquire) != 0) {
      throw PipeLost("the other end has closed the connection");
    }
    uint64_t end = out_.written.load(std::memory_order_relaxed);
    const uint64_t begin = end;
    size_t room = capacity_ - used(end, out_.read.load(std::memory_order_acquire));
    size_t unpublished = 0;
    for (int k = 0; k < count && room > 0; ++k) {
      const char* source = static_cast<const char*>(parts[k].iov_base);
      size_t remaining = parts[k].iov_len;
      while (remaining > 0 && room > 0) {
        const size_t offset = static_cast<size_t>(end % capacity_);
        const size_t size = std::min({remaining, room, capacity_ - offset, kChunk - unpublished});
        std::memcpy(out_bytes_ + offset, source, size);
        source += size;
        remaining -= size;
        room -= size;
        end += size;
        unpublished += size;
        if (unpublished == kChunk) {
          publish(end);
          unpublished = 0;
        }
      }
    }
    if (unpublished > 0) publish(end);
    return static_cast<size_t>(end - begin);
  }

  void sleep(bool to_read, bool to_write, int64_t nanoseconds) override {
    const uint32_t generation = own_bell_.generation();
    if ((to_read && used(in_.written.load(), in_.read.load()) > 0) ||
        (to_write && used(out_.written.load(), out_.read.load()) < capacity_) ||
        shared_.is_closed.load() != 0) {
      return;
    }
    own_bell_.wait(generation, 0, std::min(nanoseconds, kCheckInterval));
    check_peer();
  }

  void shut_down() override {
    shared_.is_closed.store(1);
    own_bell_.ring(kEveryone);
    peer_bell_.ring(kEveryone);
    ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  /// Bytes in a ring. One of the counters belongs to the other end and is not trusted.
  size_t used(uint64_t written, uint64_t read) const {
    const uint64_t size = written - read;
    if (size > capacity_) throw PipeLost("the counters in shared memory are invalid");
    return static_cast<size_t>(size);
  }

  bool is_drained(uint64_t begin) const { return in_.written.load() == begin; }

  void publish(uint64_t end) {
    out_.written.store(end, std::memory_order_release);
    peer_bell_.ring(kEveryone);
  }

  /// Polls the socket, at most once per kCheckInterval: it is readable once the other end is gone.
  void check_peer() {
    const int64_t now = monotonic_ns();
    if (now - checked_at_ < kCheckInterval) return;
    checked_at_ = now;
    pollfd polled{socket_, POLLIN | POLLRDHUP, 0};
    if (::poll(&polled, 1, 0) > 0) shared_.is_closed.store(1);
  }

  Shared& shared_;
  const size_t capacity_;
  RingCounters& out_;
  RingCounters& in_;
  char* out_bytes_;
  const char* in_bytes_;
  Bell own_bell_;
  Bell peer_bell_;
  int socket_;
  std::atomic<int64_t> checked_at_{0};
};

}  // namespace

size_t ring_pipe_bytes(size_t capacity) { return sizeof(Shared) + 2 * capacity; }

std::unique_ptr<Pipe> make_ring_pipe(char* memory, size_t capacity, int end, int socket) {
  return std::make_unique<RingPipe>(memory, capacity, end, socket);
}

}  // namespace shoal
