#include "batch.h"

#include <cstring>
#include <vector>

#include "../python/numpy.h"

namespace shoal {

namespace {

/// A value and the row it belongs to; the events own the value.
struct Entry {
  Py_ssize_t row;
  PyObject* value;
};

/// All values of one key, in the order of their events.
struct Group {
  PyObject* key;  // owned by the events
  std::vector<Entry> entries;
};

/// The values by key, in the order of the keys' first occurrence.
class Groups {
 public:
  void add(Py_ssize_t row, PyObject* info) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    size_t expected = 0;  // infos usually have the same keys in the same order
    while (PyDict_Next(info, &position, &key, &value)) {
      const size_t index = find(key, expected);
      groups_[index].entries.push_back({row, value});
      expected = index + 1;
    }
  }

  const std::vector<Group>& all() const { return groups_; }

 private:
  size_t find(PyObject* key, size_t expected) {
    if (expected < groups_.size() && groups_[expected].key == key) return expected;
    if (!index_) index_ = Ref::checked(PyDict_New());
    PyObject* position = PyDict_GetItemWithError(index_.get(), key);
    if (position != nullptr) return PyLong_AsSize_t(position);
    if (PyErr_Occurred()) throw nb::python_error();
    Ref number = Ref::checked(PyLong_FromSize_t(groups_.size()));
    check(PyDict_SetItem(index_.get(), key, number.get()));
    groups_.push_back({key, {}});
    return groups_.size() - 1;
  }

  std::vector<Group> groups_;
  Ref index_;  // dict: key -> position in groups_
};

enum class Kind { kFloat, kInteger, kBool, kScalar, kArray, kDict, kObject };

/// Classifies a value by its exact type, as Gymnasium does.
Kind kind_of(PyObject* value) {
  if (PyFloat_CheckExact(value)) return Kind::kFloat;
  if (PyBool_Check(value)) return Kind::kBool;
  if (PyLong_CheckExact(value)) return Kind::kInteger;
  if (PyDict_Check(value)) return Kind::kDict;
  if (PyArray_Check(value)) return Kind::kArray;
  if (PyArray_IsScalar(value, Number)) return Kind::kScalar;
  return Kind::kObject;
}

Ref zeros(int dimensions, const npy_intp* shape, PyArray_Descr* descr) {
  Py_INCREF(descr);
  return Ref::checked(PyArray_Zeros(dimensions, const_cast<npy_intp*>(shape), descr, 0));
}

template <class T>
T* numbers(const Ref& array) {
  return static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())));
}

template <class T, class Convert>
Ref number_column(const Group& group, npy_intp rows, int type_num, const Convert& convert) {
  Ref descr = Ref::checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_num)));
  Ref column = zeros(1, &rows, reinterpret_cast<PyArray_Descr*>(descr.get()));
  T* values = numbers<T>(column);
  for (const Entry& entry : group.entries) values[entry.row] = convert(entry.value);
  return column;
}

/// A column of NumPy scalars of one type, or null if the types differ.
Ref scalar_column(const Group& group, npy_intp rows) {
  PyTypeObject* type = Py_TYPE(group.entries.front().value);
  for (const Entry& entry : group.entries) {
    if (Py_TYPE(entry.value) != type) return {};
  }
  Ref descr = Ref::checked(
      reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(group.entries.front().value)));
  auto* dtype = reinterpret_cast<PyArray_Descr*>(descr.get());
  if (PyDataType_REFCHK(dtype) || dtype->type_num == NPY_TIMEDELTA) return {};
  Ref column = zeros(1, &rows, dtype);
  for (const Entry& entry : group.entries) {
    PyArray_ScalarAsCtype(entry.value,
                          numbers<char>(column) + entry.row * PyDataType_ELSIZE(dtype));
  }
  return column;
}

/// A column of arrays of one dtype and shape, or null if these differ.
Ref array_column(const Group& group, npy_intp rows) {
  auto* first = reinterpret_cast<PyArrayObject*>(group.entries.front().value);
  PyArray_Descr* dtype = PyArray_DESCR(first);
  const int dimensions = PyArray_NDIM(first);
  if (dimensions + 1 > NPY_MAXDIMS) return {};
  for (const Entry& entry : group.entries) {
    auto* array = reinterpret_cast<PyArrayObject*>(entry.value);
    if (PyArray_NDIM(array) != dimensions || !PyArray_SAMESHAPE(array, first) ||
        !PyArray_EquivTypes(PyArray_DESCR(array), dtype)) {
      return {};
    }
  }
  npy_intp shape[NPY_MAXDIMS];
  shape[0] = rows;
  std::copy(PyArray_DIMS(first), PyArray_DIMS(first) + dimensions, shape + 1);
  Ref column = zeros(dimensions + 1, shape, dtype);
  const npy_intp bytes = PyArray_NBYTES(first);
  for (const Entry& entry : group.entries) {
    if (PyDataType_REFCHK(dtype)) {
      check(PySequence_SetItem(column.get(), entry.row, entry.value));
      continue;
    }
    Ref contiguous = Ref::checked(PyArray_FROM_OF(entry.value, NPY_ARRAY_C_CONTIGUOUS));
    auto* array = reinterpret_cast<PyArrayObject*>(contiguous.get());
    std::memcpy(numbers<char>(column) + entry.row * bytes, PyArray_DATA(array), bytes);
  }
  return column;
}

/// A column of objects, with None in rows without a value.
Ref object_column(const Group& group, npy_intp rows) {
  Ref column = Ref::checked(PyArray_SimpleNew(1, &rows, NPY_OBJECT));
  auto** items = numbers<PyObject*>(column);
  for (npy_intp row = 0; row < rows; ++row) Py_XSETREF(items[row], Py_NewRef(Py_None));
  for (const Entry& entry : group.entries) {
    Py_XSETREF(items[entry.row], Py_NewRef(entry.value));
  }
  return column;
}

Ref merged_column(const Group& group, npy_intp rows, PyObject* merge) {
  Ref pairs = Ref::checked(PyList_New(0));
  for (const Entry& entry : group.entries) {
    Ref pair = Ref::checked(Py_BuildValue("(nO)", entry.row, entry.value));
    check(PyList_Append(pairs.get(), pair.get()));
  }
  return Ref::checked(PyObject_CallFunction(merge, "nO", rows, pairs.get()));
}

Ref build(const Groups& groups, npy_intp rows, PyObject* merge);

/// The column of a group whose values are all of `kind`, or null if they have no common type.
Ref uniform_column(const Group& group, Kind kind, npy_intp rows, PyObject* merge) {
  switch (kind) {
    case Kind::kFloat:
      return number_column<double>(group, rows, NPY_FLOAT64,
                                   [](PyObject* v) { return PyFloat_AS_DOUBLE(v); });
    case Kind::kBool:
      return number_column<npy_bool>(group, rows, NPY_BOOL,
                                     [](PyObject* v) -> npy_bool { return v == Py_True; });
    case Kind::kInteger: {
      int overflow = 0;
      for (const Entry& entry : group.entries) {
        PyLong_AsLongLongAndOverflow(entry.value, &overflow);
        if (overflow != 0) return {};
      }
      return number_column<int64_t>(group, rows, NPY_INT64,
                                    [](PyObject* v) { return PyLong_AsLongLong(v); });
    }
    case Kind::kScalar:
      return scalar_column(group, rows);
    case Kind::kArray:
      return array_column(group, rows);
    case Kind::kDict: {
      Groups nested;
      for (const Entry& entry : group.entries) nested.add(entry.row, entry.value);
      return build(nested, rows, merge);
    }
    case Kind::kObject:
      return object_column(group, rows);
  }
  Py_UNREACHABLE();
}

Ref column_of(const Group& group, npy_intp rows, PyObject* merge) {
  if (PyUnicode_Check(group.key) && PyUnicode_CompareWithASCIIString(group.key, "final_obs") == 0) {
    return object_column(group, rows);
  }
  const Kind kind = kind_of(group.entries.front().value);
  for (const Entry& entry : group.entries) {
    if (kind_of(entry.value) != kind) return merged_column(group, rows, merge);
  }
  Ref column = uniform_column(group, kind, rows, merge);
  return column ? column : merged_column(group, rows, merge);
}

Ref mask_of(const Group& group, npy_intp rows) {
  return number_column<npy_bool>(group, rows, NPY_BOOL, [](PyObject*) -> npy_bool { return 1; });
}

Ref build(const Groups& groups, npy_intp rows, PyObject* merge) {
  const Depth depth(" while batching infos");
  Ref result = Ref::checked(PyDict_New());
  for (const Group& group : groups.all()) {
    Ref column = column_of(group, rows, merge);
    Ref mask = mask_of(group, rows);
    Ref mask_key = Ref::checked(PyUnicode_FromFormat("_%S", group.key));
    check(PyDict_SetItem(result.get(), group.key, column.get()));
    check(PyDict_SetItem(result.get(), mask_key.get(), mask.get()));
  }
  return result;
}

}  // namespace

nb::object batch_infos(nb::list events, Py_ssize_t num_rows, nb::callable merge) {
  Groups groups;
  for (nb::handle event : events) {
    PyObject* row_number = nullptr;
    PyObject* info = nullptr;
    if (!PyArg_ParseTuple(event.ptr(), "OO!", &row_number, &PyDict_Type, &info)) {
      throw nb::python_error();
    }
    const Py_ssize_t row = PyLong_AsSsize_t(row_number);
    if (row < 0 || row >= num_rows) raise(PyExc_IndexError, "the row of an info is out of range");
    groups.add(row, info);
  }
  return nb::steal(build(groups, num_rows, merge.ptr()).release());
}

}  // namespace shoal
