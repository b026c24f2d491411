#include "meter.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../python/numpy.h"

namespace shoal {

namespace {

constexpr double kShortest = 1e-7;
constexpr double kBinsPerDecade = 10;
constexpr size_t kMaxEnded = 4096;

PyArrayObject* array_of(nb::handle object, int type, npy_intp rows, const char* name) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (!PyArray_Check(object.ptr()) || PyArray_TYPE(array) != type || PyArray_NDIM(array) != 1 ||
      !PyArray_ISCARRAY_RO(array) || (rows >= 0 && PyArray_DIM(array, 0) != rows)) {
    raise(PyExc_TypeError,
          "%s must be a contiguous array of the pool's dtype with one value for each slot", name);
  }
  return array;
}

/// Calls `visit` with each row in which either flag is set. Tests eight rows at a time, because
/// most rows have no flag set.
template <class Visit>
void for_each_set(const uint8_t* terminated, const uint8_t* truncated, npy_intp rows, Visit visit) {
  npy_intp row = 0;
  for (; row + 8 <= rows; row += 8) {
    uint64_t a, b;
    std::memcpy(&a, terminated + row, 8);
    std::memcpy(&b, truncated + row, 8);
    // Each flag is a byte of 0 or 1; the first row is in the lowest byte.
    for (uint64_t bits = a | b; bits != 0; bits &= bits - 1) {
      visit(row + __builtin_ctzll(bits) / 8);
    }
  }
  for (; row < rows; ++row) {
    if (terminated[row] | truncated[row]) visit(row);
  }
}

}  // namespace

Meter::Meter(int64_t num_envs, Autoreset mode, double interval)
    : num_envs_(num_envs),
      mode_(mode),
      interval_(interval),
      returns_(static_cast<size_t>(std::min(num_envs, kTracked))),
      lengths_(returns_.size()) {
  if (num_envs < 1) raise(PyExc_ValueError, "the number of slots must be positive");
  start_ = now();
  due_ = start_ + interval_;
}

double Meter::now() const {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Meter::begin() { start_ = now(); }

bool Meter::end(nb::handle rewards, nb::handle terminated, nb::handle truncated) {
  const double received = now();
  const auto* reward =
      static_cast<const double*>(PyArray_DATA(array_of(rewards, NPY_DOUBLE, num_envs_, "rewards")));
  const auto* is_terminated = static_cast<const uint8_t*>(
      PyArray_DATA(array_of(terminated, NPY_BOOL, num_envs_, "terminated")));
  const auto* is_truncated = static_cast<const uint8_t*>(
      PyArray_DATA(array_of(truncated, NPY_BOOL, num_envs_, "truncated")));
  const size_t tracked = returns_.size();
  for (size_t slot = 0; slot < tracked; ++slot) returns_[slot] += reward[slot];
  for (size_t slot = 0; slot < tracked; ++slot) ++lengths_[slot];
  for_each_set(is_terminated, is_truncated, num_envs_, [&](npy_intp slot) { end_episode(slot); });
  return finish(num_envs_, received);
}

bool Meter::end_some(nb::handle slots, nb::handle rewards, nb::handle terminated,
                     nb::handle truncated) {
  const double received = now();
  auto* slot_array = array_of(slots, NPY_INT64, -1, "slots");
  const npy_intp rows = PyArray_DIM(slot_array, 0);
  const auto* slot = static_cast<const int64_t*>(PyArray_DATA(slot_array));
  const auto* reward =
      static_cast<const double*>(PyArray_DATA(array_of(rewards, NPY_DOUBLE, rows, "rewards")));
  const auto* is_terminated =
      static_cast<const uint8_t*>(PyArray_DATA(array_of(terminated, NPY_BOOL, rows, "terminated")));
  const auto* is_truncated =
      static_cast<const uint8_t*>(PyArray_DATA(array_of(truncated, NPY_BOOL, rows, "truncated")));
  const auto tracked = static_cast<int64_t>(returns_.size());
  for (npy_intp row = 0; row < rows; ++row) {
    if (slot[row] < 0 || slot[row] >= tracked) continue;
    returns_[static_cast<size_t>(slot[row])] += reward[row];
    ++lengths_[static_cast<size_t>(slot[row])];
  }
  for_each_set(is_terminated, is_truncated, rows, [&](npy_intp row) { end_episode(slot[row]); });
  return finish(rows, received);
}

void Meter::end_episode(int64_t slot) {
  ++episodes_;
  if (slot < 0 || slot >= static_cast<int64_t>(returns_.size())) return;
  const auto index = static_cast<size_t>(slot);
  const Ended ended{slot, returns_[index], lengths_[index]};
  if (ended_.size() < kMaxEnded) {
    ended_.push_back(ended);
  } else {
    ended_[oldest_] = ended;
    oldest_ = (oldest_ + 1) % kMaxEnded;
  }
  returns_[index] = 0;
  // In next-step mode the next step of this slot is the reset, which does not count.
  lengths_[index] = mode_ == Autoreset::kNextStep ? -1 : 0;
}

bool Meter::finish(int64_t count, double received) {
  steps_ += count;
  ++batches_;
  time_batch(received - start_);
  const double done = now();
  spent_ += done - received;
  if (done < due_) return false;
  due_ = done + interval_;
  return true;
}

void Meter::time_batch(double seconds) {
  latest_ = seconds;
  longest_ = std::max(longest_, seconds);
  const double bin = kBinsPerDecade * std::log10(std::max(seconds, kShortest) / kShortest);
  ++bins_[std::min(static_cast<size_t>(bin), kBins - 1)];
}

void Meter::reset(nb::handle slots) {
  if (slots.is_none()) {
    std::fill(returns_.begin(), returns_.end(), 0.0);
    std::fill(lengths_.begin(), lengths_.end(), 0);
    return;
  }
  auto* slot_array = array_of(slots, NPY_INT64, -1, "slots");
  const auto* slot = static_cast<const int64_t*>(PyArray_DATA(slot_array));
  for (npy_intp row = 0; row < PyArray_DIM(slot_array, 0); ++row) {
    if (slot[row] < 0 || slot[row] >= static_cast<int64_t>(returns_.size())) continue;
    returns_[static_cast<size_t>(slot[row])] = 0;
    lengths_[static_cast<size_t>(slot[row])] = 0;
  }
}

std::vector<double> Meter::edges() {
  std::vector<double> edges;
  for (size_t bin = 0; bin <= kBins; ++bin) {
    edges.push_back(kShortest * std::pow(10.0, static_cast<double>(bin) / kBinsPerDecade));
  }
  return edges;
}

double Meter::take_longest() {
  const double longest = longest_;
  longest_ = 0;
  return longest;
}

nb::list Meter::take_ended() {
  nb::list episodes;
  for (size_t k = 0; k < ended_.size(); ++k) {
    const Ended& ended = ended_[(oldest_ + k) % ended_.size()];
    episodes.append(nb::make_tuple(ended.slot, ended.total, ended.length));
  }
  ended_.clear();
  oldest_ = 0;
  return episodes;
}

}  // namespace shoal
