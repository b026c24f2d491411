// Banks, the columns of a batch, and the state of slots between steps.
#pragma once

#include "../layout/tree.h"
#include "../python/exclusive_use.h"
#include "autoreset.h"

namespace shoal {

/// A column with one number per row.
template <class T>
struct Column {
  Column() = default;
  Column(nb::handle array, int type_num, Py_ssize_t rows) : owner(Ref::borrow(array.ptr())) {
    auto* typed = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (!PyArray_Check(array.ptr()) || PyArray_TYPE(typed) != type_num ||
        !PyArray_ISCARRAY(typed) || PyArray_SIZE(typed) != rows) {
      raise(PyExc_ValueError, "expected a column of %zd numbers", rows);
    }
    data = static_cast<T*>(PyArray_DATA(typed));
  }

  /// Makes the array exclusively owned: recycles it if the user has released it, or replaces it.
  void renew(const Ref& descr, Py_ssize_t rows) {
    renew_array(owner, reinterpret_cast<PyArray_Descr*>(descr.get()), 1, &rows);
    data = static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(owner.get())));
  }

  T& operator[](Py_ssize_t row) const { return data[row]; }

  /// The first `count` of `rows` numbers, as an array.
  Ref head(Py_ssize_t count, Py_ssize_t rows) const {
    if (count == rows) return owner;
    return Ref::checked(PySequence_GetSlice(owner.get(), 0, count));
  }

  Ref owner;
  T* data = nullptr;
};

/// The columns of one batch. A bank of the arena's arrays is reused for every batch. The arrays of
/// other banks are returned to the user and renewed for every batch.
struct Bank {
  Bank() = default;
  Bank(const Tree& tree, nb::sequence columns, nb::handle reward_array, nb::handle terminated_array,
       nb::handle truncated_array, Py_ssize_t row_count)
      : rows(row_count),
        observations(tree, columns, row_count),
        rewards(reward_array, NPY_FLOAT64, row_count),
        terminated(terminated_array, NPY_BOOL, row_count),
        truncated(truncated_array, NPY_BOOL, row_count) {}

  int traverse(visitproc visit, void* arg) const { return observations.traverse(visit, arg); }

  /// Returns the extras of these rows, for put_objects in another process.
  nb::object objects(nb::handle slots) const;
  void put_objects(nb::handle slots, nb::handle extras);

  void renew(const Tree& tree, Py_ssize_t row_count) {
    rows = row_count;
    observations.renew(tree, row_count);
    rewards.renew(number_descr_, row_count);
    terminated.renew(flag_descr_, row_count);
    truncated.renew(flag_descr_, row_count);
  }

  /// Sets a row for a slot that was reset instead of stepped.
  void clear_results(Py_ssize_t row) const {
    rewards[row] = 0.0;
    terminated[row] = 0;
    truncated[row] = 0;
  }

  /// Releases the objects of the batch, but keeps its arrays for recycling.
  void forget_objects() {
    for (Ref& list : observations.objects) list = Ref();
  }

  Py_ssize_t rows = 0;
  Columns observations;
  Column<double> rewards;
  Column<uint8_t> terminated;
  Column<uint8_t> truncated;

 private:
  static Ref descr_of(int type_num) {
    return Ref::checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_num)));
  }
  Ref number_descr_ = descr_of(NPY_FLOAT64);
  Ref flag_descr_ = descr_of(NPY_BOOL);
};

/// Two alternating banks for batches that the user owns. Usually the user still holds the previous
/// batch, but has released the one before, which is recycled.
class UserBanks {
 public:
  Bank& renewed(const Tree& tree, Py_ssize_t rows) {
    current_ = 1 - current_;
    banks_[current_].renew(tree, rows);
    return banks_[current_];
  }

  int traverse(visitproc visit, void* arg) const {
    for (const Bank& bank : banks_) {
      if (const int stop = bank.traverse(visit, arg)) return stop;
    }
    return 0;
  }

 private:
  Bank banks_[2];
  int current_ = 0;
};

/// Columns of the arena with the state of each slot between steps.
struct SlotState {
  SlotState(nb::handle finished_array, nb::handle return_array, nb::handle length_array,
            nb::handle start_array, Py_ssize_t slots)
      : count(slots),
        finished(finished_array, NPY_BOOL, slots),
        episode_return(return_array, NPY_FLOAT64, slots),
        episode_length(length_array, NPY_INT64, slots),
        episode_start(start_array, NPY_FLOAT64, slots) {}

  Py_ssize_t count;
  Column<uint8_t> finished;  // the last step ended an episode, and no reset has followed
  Column<double> episode_return;
  Column<int64_t> episode_length;
  Column<double> episode_start;  // seconds of the steady clock
  bool busy = false;             // a call is using these slots
};

/// Marks a vector's slots as in use and refuses a second user. Calls on slots run Python code,
/// which may release the GIL or call the vector again.
class SlotsInUse {
 public:
  explicit SlotsInUse(SlotState& state) : state_(state) {
    if (state_.busy) raise_in_use();
    state_.busy = true;
  }
  ~SlotsInUse() { state_.busy = false; }
  SlotsInUse(const SlotsInUse&) = delete;
  SlotsInUse& operator=(const SlotsInUse&) = delete;

 private:
  SlotState& state_;
};

}  // namespace shoal
