#include "port.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../stepper/bank.h"

namespace shoal {

namespace {

constexpr size_t kRoom = 1 << 16;       // bytes that are received ahead
constexpr int64_t kLook = 50'000'000;   // nanoseconds between looks at signals and the clock
constexpr size_t kLargest = 1 << 20;    // bytes of a buffer that is kept when it is empty
constexpr size_t kMostAhead = 1 << 26;  // bytes, while the other end does not read
constexpr double kSlowest = 1 << 16;    // bytes a second: who is slower wants to keep us busy
constexpr size_t kMostParts = 256;      // that are written at once
constexpr double kForever = 1e9;        // seconds, a few decades
constexpr int kTurns = 8;               // of a spin, after which others may run on this core

/// A buffer of Python's, held while it is in use.
class Held {
 public:
  Held(PyObject* object, bool writes) {
    check(PyObject_GetBuffer(object, &view_, writes ? PyBUF_CONTIG : PyBUF_CONTIG_RO));
  }
  Held(Held&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Held(const Held&) = delete;
  ~Held() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  char* data() const { return static_cast<char*>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

std::vector<Held> held(nb::sequence buffers, bool writes) {
  Ref fast = Ref::checked(PySequence_Fast(buffers.ptr(), "expected a sequence of buffers"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
  std::vector<Held> found;
  found.reserve(static_cast<size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) {
    found.emplace_back(PySequence_Fast_GET_ITEM(fast.get(), k), writes);
  }
  return found;
}

/// Where in shared memory the rings end, and trays begin: whole pages.
size_t rings_end(size_t capacity) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (ring_pipe_bytes(capacity) + page - 1) / page * page;
}

/// Handlers of signals that have come while the GIL was released run now, and may raise.
void run_signal_handlers() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

Port::Port(std::unique_ptr<Pipe> pipe, std::string name, bool may_spin, double patience)
    : pipe_(std::move(pipe)),
      name_(std::move(name)),
      patience_(static_cast<int64_t>(patience * 1e9)),
      policy_(may_spin),
      buffer_(kRoom) {}

/// The pipe for the time of one call; the GIL is released, and what the pipe throws is translated.
class Port::Use {
 public:
  explicit Use(Port& port) : port_(port) {
    const std::lock_guard<std::mutex> guard(port.lock_);
    pipe_ = port.pipe_;
    if (pipe_ == nullptr) port.lost("the connection was closed");
  }

  template <class Work>
  auto run(Work&& work) {
    std::string problem;
    {
      nb::gil_scoped_release release;
      try {
        return work(*pipe_);
      } catch (const PipeLost& lost) {
        problem = lost.what();
      }
    }
    port_.lost(problem);
  }

 private:
  Port& port_;
  std::shared_ptr<Pipe> pipe_;
};

void Port::send(nb::sequence parts, bool reads) {
  const std::vector<Held> buffers = held(parts, false);
  std::vector<iovec> pieces;
  pieces.reserve(buffers.size());
  for (const Held& buffer : buffers) {
    if (buffer.size() > 0) pieces.push_back({buffer.data(), buffer.size()});
  }
  send_parts(std::move(pieces), reads);
}

void Port::send_parts(std::vector<iovec> parts, bool reads) {
  Use(*this).run([&](Pipe& pipe) { write_all(pipe, std::move(parts), reads); });
}

void Port::write_all(Pipe& pipe, std::vector<iovec> parts, bool reads) {
  size_t first = 0;
  int64_t idle_since = monotonic_ns();
  while (first < parts.size()) {
    if (parts[first].iov_len == 0) {
      ++first;  // nothing of it can be written, which would look as if there were no room
      continue;
    }
    const size_t count = std::min(parts.size() - first, kMostParts);
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
    if (reads && ahead() < kMostAhead) {
      if (end_ == buffer_.size()) make_room(2 * ahead() + kRoom);
      if (fill_once(pipe)) continue;
    }
    if (monotonic_ns() - idle_since > patience_)
      throw PipeLost("the other end has stopped reading");
    pipe.sleep(reads && ahead() < kMostAhead, true, kLook);
    run_signal_handlers();
  }
}

nb::object Port::peek(size_t needed, std::optional<double> seconds) {
  const char* seen = await_bytes(needed, seconds);
  return seen == nullptr ? nb::none() : nb::object(nb::bytes(seen, needed));
}

const char* Port::await_bytes(size_t needed, std::optional<double> seconds) {
  if (ahead() < needed) {
    const double patience = std::clamp(seconds.value_or(kForever), 0.0, kForever);
    const int64_t deadline = monotonic_ns() + static_cast<int64_t>(patience * 1e9);
    Use use(*this);
    if (!use.run([&](Pipe& pipe) { return await(pipe, needed, deadline); })) return nullptr;
  }
  return buffer_.data() + start_;
}

/// Reads until there are so many bytes in our buffer; false when the time is over.
bool Port::await(Pipe& pipe, size_t needed, int64_t deadline) {
  make_room(needed);
  const int64_t begun = monotonic_ns();
  while (ahead() < needed && fill_once(pipe)) continue;
  if (ahead() >= needed) return true;
  const int64_t spin_until = std::min(begun + policy_.begin(), deadline);
  bool has_slept = false;
  for (int turn = 1; ahead() < needed; ++turn) {
    if (fill_once(pipe)) continue;
    const int64_t now = monotonic_ns();
    if (now >= deadline) break;
    if (now < spin_until) {
      // The other end may be waiting for this very core; while both can run, the system parts them.
      if (turn % kTurns == 0) {
        sched_yield();
      } else {
        pause_cpu();
      }
      continue;
    }
    has_slept = true;
    pipe.sleep(true, false, std::min(deadline - now, kLook));
    if (fill_once(pipe)) continue;
    run_signal_handlers();  // nothing has come: one of ours may be asking us to stop
  }
  if (deadline > begun) policy_.end(monotonic_ns() - begun, has_slept);
  return ahead() >= needed;
}

void Port::skip(size_t count) {
  start_ += std::min(count, ahead());
  if (start_ < end_) return;
  start_ = end_ = 0;
  if (buffer_.size() > kLargest) std::vector<char>(kRoom).swap(buffer_);
}

void Port::receive_into(nb::sequence buffers) {
  const std::vector<Held> targets = held(buffers, true);
  std::vector<iovec> parts;
  parts.reserve(targets.size());
  for (const Held& target : targets) parts.push_back({target.data(), target.size()});
  receive_parts(parts);
}

void Port::receive_parts(const std::vector<iovec>& parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  const auto slowest = static_cast<int64_t>(1e9 * static_cast<double>(total) / kSlowest);
  const int64_t deadline = monotonic_ns() + patience_ + slowest;
  auto fill = [&](Pipe* pipe) {
    for (const iovec& part : parts) {
      char* target = static_cast<char*>(part.iov_base);
      const size_t there = std::min(part.iov_len, ahead());
      std::memcpy(target, buffer_.data() + start_, there);
      skip(there);
      if (there < part.iov_len) read_all(*pipe, target + there, part.iov_len - there, deadline);
    }
  };
  if (total <= ahead()) return fill(nullptr);  // most messages: all of it has come at once
  Use(*this).run([&](Pipe& pipe) { fill(&pipe); });
}

/// Reads so many bytes, small ones by way of our buffer: what follows is probably there as well.
void Port::read_all(Pipe& pipe, char* target, size_t size, int64_t deadline) {
  int64_t idle_since = monotonic_ns();
  while (size > 0) {
    size_t count = 0;
    if (size < kRoom / 2) {
      make_room(size);
      if (fill_once(pipe)) {
        count = std::min(size, ahead());
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
    if (idle > patience_ || now > deadline) throw PipeLost("a message was not completed");
    if (idle < policy_.begin()) {
      pause_cpu();
      continue;
    }
    pipe.sleep(true, false, kLook);
    run_signal_handlers();
  }
}

bool Port::fill_once(Pipe& pipe) {
  const size_t count = pipe.read_some(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  received_ += count;
  return count > 0;
}

/// Makes room for so many bytes in all, after which there is some at the end.
void Port::make_room(size_t needed) {
  if (start_ + std::max(needed, ahead() + 1) <= buffer_.size()) return;
  std::memmove(buffer_.data(), buffer_.data() + start_, ahead());
  end_ -= start_;
  start_ = 0;
  if (needed >= buffer_.size()) buffer_.resize(2 * needed);
}

size_t Port::shared_bytes(size_t capacity, size_t trays) { return rings_end(capacity) + trays; }

void Port::share(nb::handle memory, size_t capacity, size_t trays, int end) {
  const auto size = static_cast<Py_ssize_t>(shared_bytes(capacity, trays));
  const Column<char> bytes(memory, NPY_UINT8, size);
  const std::lock_guard<std::mutex> guard(lock_);
  if (pipe_ == nullptr) lost("the connection was closed");
  pipe_ = make_ring_pipe(bytes.data, capacity, end, pipe_->release_socket());
  memory_ = bytes.owner;
  if (trays > 0) trays_ = {bytes.owner, bytes.data + rings_end(capacity), trays};
}

void Port::close() {
  std::shared_ptr<Pipe> pipe;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    pipe.swap(pipe_);
  }
  // A thread that is inside keeps the descriptor open, wakes up now, and lets it go.
  if (pipe != nullptr) pipe->shut_down();
}

void Port::abandon() {
  // Frames of threads that the child has not got may hold the pipe for ever.
  if (pipe_ != nullptr) ::close(pipe_->release_socket());
  pipe_ = nullptr;
}

void Port::lost(const std::string& what) const {
  Ref type = error_class("ConnectionLostError");
  raise(type.get(), "%s: %s", name_.c_str(), what.c_str());
}

}  // namespace shoal
