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

constexpr int64_t kLook = 10'000'000;  // nanoseconds between looks whether the other end is there
constexpr size_t kPiece = 1 << 17;     // bytes after which the other end is told to begin

/// Bytes from one end to the other. The counts only grow; each is written by one end.
struct alignas(64) RingWords {
  std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
};

/// The beginning of the shared memory; the bytes of ring 0, then those of ring 1, follow.
struct Shared {
  RingWords rings[2];  // ring k is written by end k
  BellWords bells[2];  // bell k is for end k to wait at
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
        ours_(shared_.bells[end], make_futex_sleep(), false),
        theirs_(shared_.bells[1 - end], make_futex_sleep(), false),
        socket_(socket) {}
  ~RingPipe() override {
    if (socket_ >= 0) ::close(socket_);
  }

  size_t read_some(char* target, size_t size) override {
    const uint64_t begin = in_.read.load(std::memory_order_relaxed);
    const size_t there = used(in_.written.load(std::memory_order_acquire), begin);
    if (there == 0) {
      if (shared_.is_closed.load(std::memory_order_acquire) != 0 && is_drained(begin)) {
        throw PipeLost("the other end has closed the connection");
      }
      look();
      return 0;
    }
    const size_t count = std::min({size, there, kPiece});
    const size_t place = static_cast<size_t>(begin % capacity_);
    const size_t first = std::min(count, capacity_ - place);
    std::memcpy(target, in_bytes_ + place, first);
    std::memcpy(target + first, in_bytes_, count - first);
    in_.read.store(begin + count);
    // Only an end that has found no room waits for some. It may have filled it just now, and have
    // written into what was read here: then there are more bytes between the counts than fit.
    if (in_.written.load() - begin + kPiece > capacity_) theirs_.ring(kEveryone);
    return count;
  }

  int release_socket() override { return std::exchange(socket_, -1); }

  size_t write_some(const iovec* parts, int count) override {
    look();
    if (shared_.is_closed.load(std::memory_order_acquire) != 0) {
      throw PipeLost("the other end has closed the connection");
    }
    uint64_t end = out_.written.load(std::memory_order_relaxed);
    const uint64_t begin = end;
    size_t room = capacity_ - used(end, out_.read.load(std::memory_order_acquire));
    size_t untold = 0;
    for (int k = 0; k < count && room > 0; ++k) {
      const char* source = static_cast<const char*>(parts[k].iov_base);
      size_t left = parts[k].iov_len;
      while (left > 0 && room > 0) {
        const size_t place = static_cast<size_t>(end % capacity_);
        const size_t size = std::min({left, room, capacity_ - place, kPiece - untold});
        std::memcpy(out_bytes_ + place, source, size);
        source += size;
        left -= size;
        room -= size;
        end += size;
        untold += size;
        if (untold == kPiece) untold = tell(end);
      }
    }
    if (untold > 0) tell(end);
    return static_cast<size_t>(end - begin);
  }

  void sleep(bool to_read, bool to_write, int64_t nanoseconds) override {
    const uint32_t seen = ours_.generation();
    if ((to_read && used(in_.written.load(), in_.read.load()) > 0) ||
        (to_write && used(out_.written.load(), out_.read.load()) < capacity_) ||
        shared_.is_closed.load() != 0) {
      return;
    }
    ours_.wait(seen, 0, std::min(nanoseconds, kLook));
    look();
  }

  void shut_down() override {
    shared_.is_closed.store(1);
    ours_.ring(kEveryone);
    theirs_.ring(kEveryone);
    ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  /// Bytes between two counts, of which the other end may have written one: it is not trusted.
  size_t used(uint64_t written, uint64_t read) const {
    const uint64_t size = written - read;
    if (size > capacity_) throw PipeLost("the shared memory is not as it must be");
    return static_cast<size_t>(size);
  }

  bool is_drained(uint64_t begin) const { return in_.written.load() == begin; }

  size_t tell(uint64_t end) {
    out_.written.store(end, std::memory_order_release);
    theirs_.ring(kEveryone);
    return 0;
  }

  /// Looks, from time to time, whether the other end is still there.
  void look() {
    const int64_t now = monotonic_ns();
    if (now - looked_at_ < kLook) return;
    looked_at_ = now;
    pollfd watched{socket_, POLLIN | POLLRDHUP, 0};
    if (::poll(&watched, 1, 0) > 0) shared_.is_closed.store(1);
  }

  Shared& shared_;
  const size_t capacity_;
  RingWords& out_;
  RingWords& in_;
  char* out_bytes_;
  const char* in_bytes_;
  Bell ours_;
  Bell theirs_;
  int socket_;
  std::atomic<int64_t> looked_at_{0};
};

}  // namespace

size_t ring_pipe_bytes(size_t capacity) { return sizeof(Shared) + 2 * capacity; }

std::unique_ptr<Pipe> make_ring_pipe(char* memory, size_t capacity, int end, int socket) {
  return std::make_unique<RingPipe>(memory, capacity, end, socket);
}

}  // namespace shoal
