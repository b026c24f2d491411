#include "port.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../stepper/bank.h"

namespace shoal {

namespace {

constexpr size_t kBufferBytes = 1 << 16;        // initial size of the receive buffer
constexpr size_t kMaxKeptBuffer = 1 << 20;      // an empty buffer above this size is shrunk
constexpr size_t kMaxBuffered = 1 << 26;        // bytes buffered while a send is blocked
constexpr int64_t kCheckInterval = 50'000'000;  // nanoseconds between checks for signals
constexpr double kMinRate = 1 << 16;            // bytes per second; a slower sender is dropped
constexpr size_t kMaxParts = 256;               // per write; below IOV_MAX
constexpr double kForever = 1e9;                // seconds
constexpr int kSpinsPerYield = 8;

/// Holds a Python buffer for the duration of a call.
class BufferView {
 public:
  BufferView(PyObject* object, bool writes) {
    check(PyObject_GetBuffer(object, &view_, writes ? PyBUF_CONTIG : PyBUF_CONTIG_RO));
  }
  BufferView(BufferView&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  BufferView(const BufferView&) = delete;
  ~BufferView() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  char* data() const { return static_cast<char*>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

std::vector<BufferView> buffer_views(nb::sequence buffers, bool writes) {
  Ref fast = Ref::checked(PySequence_Fast(buffers.ptr(), "expected a sequence of buffers"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
  std::vector<BufferView> views;
  views.reserve(static_cast<size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) {
    views.emplace_back(PySequence_Fast_GET_ITEM(fast.get(), k), writes);
  }
  return views;
}

/// Runs the handlers of signals that arrived while the GIL was released; they may raise.
void run_signal_handlers() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

Port::Port(std::unique_ptr<Pipe> pipe, std::string name, bool may_spin, double stall_timeout)
    : pipe_(std::move(pipe)),
      name_(std::move(name)),
      stall_timeout_(static_cast<int64_t>(stall_timeout * 1e9)),
      policy_(may_spin),
      buffer_(kBufferBytes) {}

/// Keeps the pipe alive for one call, releases the GIL while it runs, and turns PipeLost into a
/// ConnectionLostError.
class Port::PipeCall {
 public:
  explicit PipeCall(Port& port) : port_(port) {
    const std::lock_guard<std::mutex> guard(port.lock_);
    pipe_ = port.pipe_;
    if (pipe_ == nullptr) port.raise_lost("the connection is closed");
  }

  template <class Work>
  auto run(Work&& work) {
    std::string reason;
    {
      nb::gil_scoped_release release;
      try {
        return work(*pipe_);
      } catch (const PipeLost& lost) {
        reason = lost.what();
      }
    }
    port_.raise_lost(reason);
  }

 private:
  Port& port_;
  std::shared_ptr<Pipe> pipe_;
};

void Port::send(nb::sequence parts, bool reads) {
  const std::vector<BufferView> buffers = buffer_views(parts, false);
  std::vector<iovec> pieces;
  pieces.reserve(buffers.size());
  for (const BufferView& buffer : buffers) {
    if (buffer.size() > 0) pieces.push_back({buffer.data(), buffer.size()});
  }
  send_parts(std::move(pieces), reads);
}

void Port::send_parts(std::vector<iovec> parts, bool reads) {
  PipeCall(*this).run([&](Pipe& pipe) { write_all(pipe, std::move(parts), reads); });
}

void Port::write_all(Pipe& pipe, std::vector<iovec> parts, bool reads) {
  size_t first = 0;
  int64_t idle_since = monotonic_ns();
  while (first < parts.size()) {
    if (parts[first].iov_len == 0) {
      ++first;  // writing an empty part returns 0, which would look like a full pipe
      continue;
    }
    const size_t count = std::min(parts.size() - first, kMaxParts);
    size_t written = pipe.write_some(parts.data() + first, static_cast<int>(count));
    if (written > 0) {
      sent_ += written;
      idle_since = monotonic_ns();
      while (written > 0) {
        iovec& part = parts[first];
        const size_t step = std::min(written, part.iov_len);
        part.iov_base = static_cast<char*>(part.iov_base) + step;
        part.iov_len -= step;
        written -= step;
        if (part.iov_len == 0) ++first;
      }
      continue;
    }
    if (reads && buffered() < kMaxBuffered) {
      if (end_ == buffer_.size()) make_room(2 * buffered() + kBufferBytes);
      if (fill_once(pipe)) continue;
    }
    if (monotonic_ns() - idle_since > stall_timeout_) {
      throw PipeLost("the other end has stopped reading");
    }
    pipe.sleep(reads && buffered() < kMaxBuffered, true, kCheckInterval);
    run_signal_handlers();
  }
}

nb::object Port::peek(size_t needed, std::optional<double> seconds) {
  const char* seen = await_bytes(needed, seconds);
  return seen == nullptr ? nb::none() : nb::object(nb::bytes(seen, needed));
}

const char* Port::await_bytes(size_t needed, std::optional<double> seconds) {
  if (buffered() < needed) {
    const double timeout = std::clamp(seconds.value_or(kForever), 0.0, kForever);
    const int64_t deadline = monotonic_ns() + static_cast<int64_t>(timeout * 1e9);
    PipeCall call(*this);
    if (!call.run([&](Pipe& pipe) { return await(pipe, needed, deadline); })) return nullptr;
  }
  return buffer_.data() + start_;
}

/// Reads until `needed` bytes are buffered; returns false after the deadline.
bool Port::await(Pipe& pipe, size_t needed, int64_t deadline) {
  make_room(needed);
  const int64_t begun = monotonic_ns();
  while (buffered() < needed && fill_once(pipe)) continue;
  if (buffered() >= needed) return true;
  const int64_t spin_until = std::min(begun + policy_.begin(), deadline);
  bool has_slept = false;
  for (int spins = 1; buffered() < needed; ++spins) {
    if (fill_once(pipe)) continue;
    const int64_t now = monotonic_ns();
    if (now >= deadline) break;
    if (now < spin_until) {
      // Yield regularly: the other end may be waiting for this core.
      if (spins % kSpinsPerYield == 0) {
        sched_yield();
      } else {
        pause_cpu();
      }
      continue;
    }
    has_slept = true;
    pipe.sleep(true, false, std::min(deadline - now, kCheckInterval));
    if (fill_once(pipe)) continue;
    run_signal_handlers();
  }
  if (deadline > begun) policy_.end(monotonic_ns() - begun, has_slept);
  return buffered() >= needed;
}

void Port::skip(size_t count) {
  start_ += std::min(count, buffered());
  if (start_ < end_) return;
  start_ = end_ = 0;
  if (buffer_.size() > kMaxKeptBuffer) std::vector<char>(kBufferBytes).swap(buffer_);
}

void Port::receive_into(nb::sequence buffers) {
  const std::vector<BufferView> targets = buffer_views(buffers, true);
  std::vector<iovec> parts;
  parts.reserve(targets.size());
  for (const BufferView& target : targets) parts.push_back({target.data(), target.size()});
  receive_parts(parts);
}

void Port::receive_parts(const std::vector<iovec>& parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  const auto transfer_time = static_cast<int64_t>(1e9 * static_cast<double>(total) / kMinRate);
  const int64_t deadline = monotonic_ns() + stall_timeout_ + transfer_time;
  auto fill = [&](Pipe* pipe) {
    for (const iovec& part : parts) {
      char* target = static_cast<char*>(part.iov_base);
      const size_t copied = std::min(part.iov_len, buffered());
      std::memcpy(target, buffer_.data() + start_, copied);
      skip(copied);
      if (copied < part.iov_len) read_all(*pipe, target + copied, part.iov_len - copied, deadline);
    }
  };
  if (total <= buffered()) return fill(nullptr);  // the usual case: everything is buffered
  PipeCall(*this).run([&](Pipe& pipe) { fill(&pipe); });
}

/// Reads `size` bytes. Small reads go through the buffer, which also takes in what follows.
void Port::read_all(Pipe& pipe, char* target, size_t size, int64_t deadline) {
  int64_t idle_since = monotonic_ns();
  while (size > 0) {
    size_t count = 0;
    if (size < kBufferBytes / 2) {
      make_room(size);
      if (fill_once(pipe)) {
        count = std::min(size, buffered());
        std::memcpy(target, buffer_.data() + start_, count);
        skip(count);
      }
    } else {
      count = pipe.read_some(target, size);
      received_ += count;
    }
    if (count > 0) {
      target += count;
      size -= count;
      idle_since = monotonic_ns();
      continue;
    }
    const int64_t now = monotonic_ns(), idle = now - idle_since;
    if (idle > stall_timeout_ || now > deadline) throw PipeLost("a message was not completed");
    if (idle < policy_.begin()) {
      pause_cpu();
      continue;
    }
    pipe.sleep(true, false, kCheckInterval);
    run_signal_handlers();
  }
}

bool Port::fill_once(Pipe& pipe) {
  const size_t count = pipe.read_some(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  received_ += count;
  return count > 0;
}

/// Makes the buffer large enough for `needed` bytes in total, with free space at the end.
void Port::make_room(size_t needed) {
  if (start_ + std::max(needed, buffered() + 1) <= buffer_.size()) return;
  std::memmove(buffer_.data(), buffer_.data() + start_, buffered());
  end_ -= start_;
  start_ = 0;
  if (needed >= buffer_.size()) buffer_.resize(2 * needed);
}

void Port::share(nb::handle memory, size_t capacity, int end) {
  const auto size = static_cast<Py_ssize_t>(ring_pipe_bytes(capacity));
  const Column<char> bytes(memory, NPY_UINT8, size);
  const std::lock_guard<std::mutex> guard(lock_);
  if (pipe_ == nullptr) raise_lost("the connection is closed");
  pipe_ = make_ring_pipe(bytes.data, capacity, end, pipe_->release_socket());
  memory_ = bytes.owner;
}

void Port::close() {
  std::shared_ptr<Pipe> pipe;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    pipe.swap(pipe_);
  }
  // A thread inside a call still holds a reference: it wakes up and drops the last one.
  if (pipe != nullptr) pipe->shut_down();
}

void Port::release_in_child() {
  // The pipe may never be destroyed: stacks of threads that do not exist in the child refer to it.
  if (pipe_ != nullptr) ::close(pipe_->release_socket());
  pipe_ = nullptr;
}

void Port::raise_lost(const std::string& reason) const {
  Ref type = error_class("ConnectionLostError");
  raise(type.get(), "%s: %s", name_.c_str(), reason.c_str());
}

}  // namespace shoal
