#include "latest.h"

#include <cstring>

namespace shoal {

namespace {

// Maximum size of an observation that is kept as a row. Copying a small observation is cheap, while
// keeping an object prevents its memory from being reused. The value is an estimate.
constexpr Py_ssize_t kMaxRowBytes = 1024;

bool fits_rows(const Tree& tree) {
  Py_ssize_t bytes = 0;
  for (const Leaf& leaf : tree.leaves) bytes += leaf.bytes;
  return tree.objects.empty() && bytes <= kMaxRowBytes;
}

}  // namespace

LatestObservations::LatestObservations(const Tree& tree, Py_ssize_t slots)
    : tree_(tree), as_rows_(fits_rows(tree)) {
  if (as_rows_) {
    rows_.renew(tree, slots);
    has_row_.resize(static_cast<size_t>(slots));
  } else {
    objects_.resize(static_cast<size_t>(slots));
  }
}

void LatestObservations::keep_rows(const Slots& slots, const Columns& columns, Py_ssize_t first) {
  if (has_row_.empty()) return;
  const bool by_slot = first == kRowsBySlot;
  if (slots.numbers == nullptr) {
    copy_rows(columns, by_slot ? slots.first : first, rows_, slots.first, slots.count);
    std::fill_n(has_row_.begin() + slots.first, slots.count, uint8_t{1});
    return;
  }
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    copy_rows(columns, by_slot ? slots[k] : first + k, rows_, slots[k], 1);
    has_row_[static_cast<size_t>(slots[k])] = 1;
  }
}

void LatestObservations::copy_rows(const Columns& from, Py_ssize_t row, const Columns& to,
                                   Py_ssize_t target, Py_ssize_t count) const {
  for (size_t k = 0; k < tree_.leaves.size(); ++k) {
    std::memcpy(to.row(tree_, k, target), from.row(tree_, k, row), tree_.leaves[k].bytes * count);
  }
}

bool LatestObservations::write(Py_ssize_t slot, Columns& columns, Py_ssize_t row, bool deep) const {
  const auto index = static_cast<size_t>(slot);
  if (as_rows_ ? !has_row_[index] : !objects_[index]) return false;
  if (as_rows_) {
    copy_rows(rows_, slot, columns, row, 1);
  } else {
    store_row(tree_, objects_[index].get(), columns, row, deep);
  }
  return true;
}

nb::list LatestObservations::save() const {
  nb::list observations;
  const size_t count = as_rows_ ? has_row_.size() : objects_.size();
  for (size_t slot = 0; slot < count; ++slot) {
    Ref observation = Ref::borrow(Py_None);
    if (as_rows_ && has_row_[slot]) {
      observation = decode_row(tree_, rows_, static_cast<Py_ssize_t>(slot));
    } else if (!as_rows_ && objects_[slot]) {
      observation = objects_[slot];
    }
    observations.append(nb::borrow(observation.get()));
  }
  return observations;
}

void LatestObservations::restore(nb::list observations) {
  const size_t count = as_rows_ ? has_row_.size() : objects_.size();
  if (nb::len(observations) != count) {
    raise(PyExc_ValueError, "expected %zu observations, one per slot", count);
  }
  for (size_t slot = 0; slot < count; ++slot) {
    const nb::object observation = observations[slot];
    if (observation.is_none()) continue;
    if (as_rows_) {
      store_row(tree_, observation.ptr(), rows_, static_cast<Py_ssize_t>(slot), true);
      has_row_[slot] = 1;
    } else {
      objects_[slot] = Ref::borrow(observation.ptr());
    }
  }
}

int LatestObservations::traverse(visitproc visit, void* arg) const {
  for (const Ref& observation : objects_) Py_VISIT(observation.get());
  return 0;
}

void LatestObservations::clear() {
  for (Ref& observation : objects_) observation = Ref();
}

}  // namespace shoal
