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
constexpr size_t kMostEnded = 4096;

PyArrayObject* array_of(nb::handle object, int type, npy_intp rows, const char* name) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (!PyArray_Check(object.ptr()) || PyArray_TYPE(array) != type || PyArray_NDIM(array) != 1 ||
      !PyArray_ISCARRAY_RO(array) || (rows >= 0 && PyArray_DIM(array, 0) != rows)) {
    raise(PyExc_TypeError, "%s must be a contiguous array of its usual dtype, one for each slot",
          name);
  }
  return array;
}

/// Calls `found` with each row in which either flag is set. Eight rows are looked at together,
/// since most have none.
template <class Found>
void for_each_set(const uint8_t* one, const uint8_t* other, npy_intp rows, Found found) {
  npy_intp row = 0;
  for (; row + 8 <= rows; row += 8) {
    uint64_t a, b;
    std::memcpy(&a, one + row, 8);
    std::memcpy(&b, other + row, 8);
    // A flag is a byte of 0 or 1, and that of the first row is the lowest.
    for (uint64_t left = a | b; left != 0; left &= left - 1) {
      found(row + __builtin_ctzll(left) / 8);
    }
  }
  for (; row < rows; ++row) {
    if (one[row] | other[row]) found(row);
  }
}

}  // namespace

Meter::Meter(int64_t num_envs, Autoreset mode, double interval)
    : num_envs_(num_envs),
      mode_(mode),
      interval_(interval),
      returns_(static_cast<size_t>(std::min(num_envs, kFollowed))),
      lengths_(returns_.size()) {
  if (num_envs < 1) raise(PyExc_ValueError, "there must be slots to count");
  began_ = now();
  due_ = began_ + interval_;
}

double Meter::now() const {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Meter::begin() { began_ = now(); }

bool Meter::end(nb::handle rewards, nb::handle terminated, nb::handle truncated) {
  const double arrived = now();
  const auto* given =
      static_cast<const double*>(PyArray_DATA(array_of(rewards, NPY_DOUBLE, num_envs_, "rewards")));
  const auto* one = static_cast<const uint8_t*>(
      PyArray_DATA(array_of(terminated, NPY_BOOL, num_envs_, "terminated")));
  const auto* other = static_cast<const uint8_t*>(
      PyArray_DATA(array_of(truncated, NPY_BOOL, num_envs_, "truncated")));
  const size_t followed = returns_.size();
  for (size_t slot = 0; slot < followed; ++slot) returns_[slot] += given[slot];
  for (size_t slot = 0; slot < followed; ++slot) ++lengths_[slot];
  for_each_set(one, other, num_envs_, [&](npy_intp slot) { end_episode(slot); });
  return finish(num_envs_, arrived);
}

bool Meter::end_some(nb::handle slots, nb::handle rewards, nb::handle terminated,
                     nb::handle truncated) {
  const double arrived = now();
  auto* chosen = array_of(slots, NPY_INT64, -1, "slots");
  const npy_intp rows = PyArray_DIM(chosen, 0);
  const auto* numbers = static_cast<const int64_t*>(PyArray_DATA(chosen));
  const auto* given =
      static_cast<const double*>(PyArray_DATA(array_of(rewards, NPY_DOUBLE, rows, "rewards")));
  const auto* one =
      static_cast<const uint8_t*>(PyArray_DATA(array_of(terminated, NPY_BOOL, rows, "terminated")));
  const auto* other =
      static_cast<const uint8_t*>(PyArray_DATA(array_of(truncated, NPY_BOOL, rows, "truncated")));
  const auto followed = static_cast<int64_t>(returns_.size());
  for (npy_intp row = 0; row < rows; ++row) {
    if (numbers[row] < 0 || numbers[row] >= followed) continue;
    returns_[static_cast<size_t>(numbers[row])] += given[row];
    ++lengths_[static_cast<size_t>(numbers[row])];
  }
  for_each_set(one, other, rows, [&](npy_intp row) { end_episode(numbers[row]); });
  return finish(rows, arrived);
}

void Meter::end_episode(int64_t slot) {
  ++episodes_;
  if (slot < 0 || slot >= static_cast<int64_t>(returns_.size())) return;
  const auto place = static_cast<size_t>(slot);
  const Ended ended{slot, returns_[place], lengths_[place]};
  if (ended_.size() < kMostEnded) {
    ended_.push_back(ended);
  } else {
    ended_[oldest_] = ended;
    oldest_ = (oldest_ + 1) % kMostEnded;
  }
  returns_[place] = 0;
  // The next step of this slot is its reset, which is no step of the episode.
  lengths_[place] = mode_ == Autoreset::kNextStep ? -1 : 0;
}

bool Meter::finish(int64_t count, double arrived) {
  steps_ += count;
  ++batches_;
  time_batch(arrived - began_);
  const double done = now();
  spent_ += done - arrived;
  if (done < due_) return false;
  due_ = done + interval_;
  return true;
}

void Meter::time_batch(double seconds) {
  latest_ = seconds;
  longest_ = std::max(longest_, seconds);
  const double place = kBinsPerDecade * std::log10(std::max(seconds, kShortest) / kShortest);
  ++bins_[std::min(static_cast<size_t>(place), kBins - 1)];
}

void Meter::reset(nb::handle slots) {
  if (slots.is_none()) {
    std::fill(returns_.begin(), returns_.end(), 0.0);
    std::fill(lengths_.begin(), lengths_.end(), 0);
    return;
  }
  auto* chosen = array_of(slots, NPY_INT64, -1, "slots");
  const auto* numbers = static_cast<const int64_t*>(PyArray_DATA(chosen));
  for (npy_intp row = 0; row < PyArray_DIM(chosen, 0); ++row) {
    if (numbers[row] < 0 || numbers[row] >= static_cast<int64_t>(returns_.size())) continue;
    returns_[static_cast<size_t>(numbers[row])] = 0;
    lengths_[static_cast<size_t>(numbers[row])] = 0;
  }
}

std::vector<double> Meter::edges() {
  std::vector<double> found;
  for (size_t bin = 0; bin <= kBins; ++bin) {
    found.push_back(kShortest * std::pow(10.0, static_cast<double>(bin) / kBinsPerDecade));
  }
  return found;
}

double Meter::take_longest() {
  const double longest = longest_;
  longest_ = 0;
  return longest;
}

nb::list Meter::take_ended() {
  nb::list taken;
  for (size_t k = 0; k < ended_.size(); ++k) {
    const Ended& ended = ended_[(oldest_ + k) % ended_.size()];
    taken.append(nb::make_tuple(ended.slot, ended.total, ended.length));
  }
  ended_.clear();
  oldest_ = 0;
  return taken;
}

}  // namespace shoal
