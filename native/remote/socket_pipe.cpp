#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "pipe.h"

namespace shoal {

namespace {

[[noreturn]] void throw_lost(int error) { throw PipeLost(std::strerror(error)); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

class SocketPipe : public Pipe {
 public:
  explicit SocketPipe(int descriptor) : descriptor_(descriptor) {}
  ~SocketPipe() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  size_t read_some(char* target, size_t size) override {
    const ssize_t count = ::recv(descriptor_, target, size, MSG_DONTWAIT);
    if (count > 0) return static_cast<size_t>(count);
    if (count == 0) throw PipeLost("the other end has closed the connection");
    if (would_block(errno)) return 0;
    throw_lost(errno);
  }

  size_t write_some(const iovec* parts, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t written = ::sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written >= 0) return static_cast<size_t>(written);
    if (would_block(errno)) return 0;
    throw_lost(errno);
  }

  void sleep(bool to_read, bool to_write, int64_t nanoseconds) override {
    pollfd polled{descriptor_, 0, 0};
    if (to_read) polled.events |= POLLIN;
    if (to_write) polled.events |= POLLOUT;
    const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    ::ppoll(&polled, 1, &time, nullptr);
  }

  int release_socket() override { return std::exchange(descriptor_, -1); }

  void shut_down() override { ::shutdown(descriptor_, SHUT_RDWR); }

 private:
  int descriptor_;
};

}  // namespace

std::unique_ptr<Pipe> make_socket_pipe(int descriptor) {
  return std::make_unique<SocketPipe>(descriptor);
}

}  // namespace shoal
