// What a batch is written into, and what is remembered of each slot from one batch to the next.
#pragma once

#include "../layout/tree.h"
#include "../python/exclusive_use.h"
#include "autoreset.h"

namespace shoal {

/// A one-dimensional column of plain numbers, one per row.
template <class T>
struct Column {
  Column() = default;
  Column(nb::handle array, int type_num, Py_ssize_t rows) : owner(Ref::borrow(array.ptr())) {
    auto* typed = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (!PyArray_Check(array.ptr()) || PyArray_TYPE(typed) != type_num ||
        !PyArray_ISCARRAY(typed) || PyArray_SIZE(typed) != rows) {
      raise(PyExc_ValueError, "a column of %zd numbers was expected", rows);
    }
    data = static_cast<T*>(PyArray_DATA(typed));
  }

  /// Memory that nobody else sees: the same again if the user has let go of it, or new.
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

/// The columns of one batch. A bank over the arena's arrays is used again and again; a bank of the
/// stepper's own is renewed for every batch, and its arrays go to the user.
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

  /// The objects in these rows: a list for each object leaf; and the way back.
  nb::object objects(nb::handle slots) const;
  void put_objects(nb::handle slots, nb::handle extras);

  void renew(const Tree& tree, Py_ssize_t row_count) {
    rows = row_count;
    observations.renew(tree, row_count);
    rewards.renew(number_descr_, row_count);
    terminated.renew(flag_descr_, row_count);
    truncated.renew(flag_descr_, row_count);
  }

  /// What a row says of a slot that was reset instead of stepped.
  void clear_results(Py_ssize_t row) const {
    rewards[row] = 0.0;
    terminated[row] = 0;
    truncated[row] = 0;
  }

  /// Lets go of the users' objects in the batch; its arrays are kept, for if they come back.
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

/// Banks for batches that are the user's to keep. The user holds the last batch while asking for
/// the next: of two, one has usually been let go of, and is used again.
class UserBanks {
 public:
  Bank& renewed(const Tree& tree, Py_ssize_t rows) {
    turn_ = 1 - turn_;
    banks_[turn_].renew(tree, rows);
    return banks_[turn_];
  }

  int traverse(visitproc visit, void* arg) const {
    for (const Bank& bank : banks_) {
      if (const int stop = bank.traverse(visit, arg)) return stop;
    }
    return 0;
  }

 private:
  Bank banks_[2];
  int turn_ = 0;
};

/// Columns of the arena that hold what each slot carries over to its next step.
struct SlotState {
  SlotState(nb::handle finished_array, nb::handle return_array, nb::handle length_array,
            nb::handle start_array, Py_ssize_t slots)
      : count(slots),
        finished(finished_array, NPY_BOOL, slots),
        episode_return(return_array, NPY_FLOAT64, slots),
        episode_length(length_array, NPY_INT64, slots),
        episode_start(start_array, NPY_FLOAT64, slots) {}

  Py_ssize_t count;
  Column<uint8_t> finished;  // the last step ended an episode, and no reset has come since
  Column<double> episode_return;
  Column<int64_t> episode_length;
  Column<double> episode_start;  // seconds of the steady clock
  bool busy = false;             // a call is at work on these slots
};

/// Keeps every other call out while one is at work on a vector's slots, however that one ends.
/// Python code runs in the middle of such calls, and may release the GIL or call back.
class Occupied {
 public:
  explicit Occupied(SlotState& state) : state_(state) {
    if (state_.busy) raise_in_use();
    state_.busy = true;
  }
  ~Occupied() { state_.busy = false; }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;

 private:
  SlotState& state_;
};

}  // namespace shoal
