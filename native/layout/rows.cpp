// Reading of actions from rows, writing of observations to rows, and batches of rows.
#include <cstring>

#include "codec.h"
#include "snapshot.h"

namespace shoal {

namespace {

/// Builds a value in the structure of a space from the results of two functions for its leaves.
template <class MakeLeaf, class MakeObject>
Ref build(const Node& node, const MakeLeaf& leaf, const MakeObject& object) {
  switch (node.kind) {
    case Node::Kind::kLeaf:
      return leaf(node.index);
    case Node::Kind::kObject:
      return object(node.index);
    case Node::Kind::kDict: {
      Ref dict = Ref::checked(PyDict_New());
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref child = build(node.children[k], leaf, object);
        check(PyDict_SetItem(dict.get(), node.keys[k].get(), child.get()));
      }
      return dict;
    }
    case Node::Kind::kTuple: {
      Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(node.children.size())));
      for (size_t k = 0; k < node.children.size(); ++k) {
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k),
                         build(node.children[k], leaf, object).release());
      }
      return tuple;
    }
  }
  Py_UNREACHABLE();
}

Ref decode_leaf(const Leaf& leaf, char* data) {
  if (!leaf.shape.empty()) {
    // A copy, since the environment may keep it and the next action overwrites the row.
    Py_INCREF(leaf.descr.get());
    Ref array =
        Ref::checked(PyArray_Empty(static_cast<int>(leaf.shape.size()),
                                   const_cast<npy_intp*>(leaf.shape.data()), leaf.dtype(), 0));
    std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())), data, leaf.bytes);
    return array;
  }
  if (!leaf.scalars.empty()) {
    int64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    const auto position = static_cast<uint64_t>(value) - static_cast<uint64_t>(leaf.low[0]);
    if (position < leaf.scalars.size()) return leaf.scalars[position];
  }
  return Ref::checked(PyArray_Scalar(data, leaf.dtype(), nullptr));
}

bool same_shape(PyArrayObject* array, const Leaf& leaf) {
  if (PyArray_NDIM(array) != static_cast<int>(leaf.shape.size())) return false;
  for (size_t k = 0; k < leaf.shape.size(); ++k) {
    if (PyArray_DIMS(array)[k] != leaf.shape[k]) return false;
  }
  return true;
}

bool same_dtype(PyArray_Descr* descr, const Leaf& leaf) {
  return descr == leaf.dtype() || PyArray_EquivTypes(descr, leaf.dtype());
}

/// A view of a row as an array, so that NumPy can cast into it.
Ref view_of_row(const Leaf& leaf, char* row) {
  Py_INCREF(leaf.descr.get());
  return Ref::checked(PyArray_NewFromDescr(
      &PyArray_Type, leaf.dtype(), static_cast<int>(leaf.shape.size()),
      const_cast<npy_intp*>(leaf.shape.data()), nullptr, row, NPY_ARRAY_CARRAY, nullptr));
}

[[noreturn]] void reject(const Leaf& leaf, PyObject* value, PyObject* as_array) {
  Ref error = error_class("ObservationError");
  Ref expected = shape_tuple(leaf.shape);
  Ref shape = Ref::checked(PyObject_GetAttrString(as_array, "shape"));
  Ref dtype = Ref::checked(PyObject_GetAttrString(as_array, "dtype"));
  raise(error.get(),
        "observation%s: got %s of dtype %S and shape %S, expected dtype %S and shape %S (%s)",
        leaf.path.c_str(), Py_TYPE(value)->tp_name, dtype.get(), shape.get(), leaf.descr.get(),
        expected.get(), leaf.space.c_str());
}

/// Converts the value with NumPy and casts it within the same kind, as Gymnasium does.
void store_by_cast(const Leaf& leaf, PyObject* value, char* row) {
  Ref source = Ref::steal(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
  if (!source) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw nb::python_error();
    PyErr_Clear();
    Ref error = error_class("ObservationError");
    raise(error.get(), "observation%s: got %s, which is not an array, expected dtype %S (%s)",
          leaf.path.c_str(), Py_TYPE(value)->tp_name, leaf.descr.get(), leaf.space.c_str());
  }
  auto* array = reinterpret_cast<PyArrayObject*>(source.get());
  // A Python int has no dtype; it fits every integer leaf that can represent its value.
  const bool plain_integer = PyLong_CheckExact(value) && leaf.is_integer() && leaf.shape.empty();
  if (!same_shape(array, leaf) ||
      (!plain_integer && !PyArray_CanCastArrayTo(array, leaf.dtype(), NPY_SAME_KIND_CASTING))) {
    reject(leaf, value, source.get());
  }
  Ref view = view_of_row(leaf, row);
  auto* target = reinterpret_cast<PyArrayObject*>(view.get());
  if (plain_integer) {
    check(PyArray_SETITEM(target, row, value));  // raises if the value does not fit
    return;
  }
  check(PyArray_CopyInto(target, array));
}

void store_leaf(const Leaf& leaf, PyObject* value, char* row) {
  if (PyArray_CheckExact(value)) {
    auto* array = reinterpret_cast<PyArrayObject*>(value);
    if (same_dtype(PyArray_DESCR(array), leaf) && PyArray_IS_C_CONTIGUOUS(array) &&
        same_shape(array, leaf)) {
      std::memcpy(row, PyArray_DATA(array), leaf.bytes);
      return;
    }
  } else if (leaf.is_int64 && leaf.shape.empty()) {
    if (PyLong_CheckExact(value)) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow == 0) {
        std::memcpy(row, &number, sizeof number);
        return;
      }
    } else if (PyArray_IsScalar(value, Int64)) {
      PyArray_ScalarAsCtype(value, row);
      return;
    }
  }
  store_by_cast(leaf, value, row);
}

Ref member(const Node& node, PyObject* value, size_t k) {
  PyObject* key = node.keys[k].get();
  Ref item = PyDict_CheckExact(value) ? Ref::borrow(PyDict_GetItemWithError(value, key))
                                      : Ref::steal(PyObject_GetItem(value, key));
  if (item) return item;
  clear_lookup_error();
  Ref error = error_class("ObservationError");
  raise(error.get(), "observation%s: got %s without the key %R, expected the keys %S",
        node.path.c_str(), Py_TYPE(value)->tp_name, key, list_of(node.keys).get());
}

Ref element(const Node& node, PyObject* value, size_t k) {
  const auto index = static_cast<Py_ssize_t>(k);
  if (PyTuple_CheckExact(value) && index < PyTuple_GET_SIZE(value)) {
    return Ref::borrow(PyTuple_GET_ITEM(value, index));
  }
  Ref item;
  if (PySequence_Check(value)) item = Ref::steal(PySequence_GetItem(value, index));
  if (item) return item;
  clear_lookup_error();
  Ref error = error_class("ObservationError");
  raise(error.get(), "observation%s: got %s without the element %zd, expected a tuple of %zu",
        node.path.c_str(), Py_TYPE(value)->tp_name, index, node.children.size());
}

void store_node(const Tree& tree, const Node& node, PyObject* value, Columns& columns,
                Py_ssize_t row, bool deep) {
  switch (node.kind) {
    case Node::Kind::kLeaf:
      store_leaf(tree.leaves[node.index], value, columns.row(tree, node.index, row));
      return;
    case Node::Kind::kObject:
      check(PyList_SetItem(columns.objects[node.index].get(), row,
                           snapshot_observation(value, deep).release()));
      return;
    case Node::Kind::kDict:
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref item = member(node, value, k);
        store_node(tree, node.children[k], item.get(), columns, row, deep);
      }
      return;
    case Node::Kind::kTuple:
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref item = element(node, value, k);
        store_node(tree, node.children[k], item.get(), columns, row, deep);
      }
      return;
  }
}

}  // namespace

Ref decode_row(const Tree& tree, const Columns& columns, Py_ssize_t row) {
  return build(
      tree.root,
      [&](size_t k) {
        if (columns.uncast[k]) {
          PyObject* value = PyList_GET_ITEM(columns.uncast[k].get(), row);
          if (value != Py_None) return Ref::borrow(value);
        }
        return decode_leaf(tree.leaves[k], columns.row(tree, k, row));
      },
      [&](size_t k) { return Ref::borrow(PyList_GET_ITEM(columns.objects[k].get(), row)); });
}

void store_row(const Tree& tree, PyObject* value, Columns& columns, Py_ssize_t row, bool deep) {
  store_node(tree, tree.root, value, columns, row, deep);
}

Ref assemble(const Tree& tree, const Columns& columns, Py_ssize_t rows) {
  return build(
      tree.root,
      [&](size_t k) {
        if (rows == columns.rows) return columns.arrays[k];
        return Ref::checked(PySequence_GetSlice(columns.arrays[k].get(), 0, rows));
      },
      [&](size_t k) {
        Ref items = Ref::checked(PyList_GetSlice(columns.objects[k].get(), 0, rows));
        return Ref::checked(PyObject_CallOneArg(tree.objects[k].join.get(), items.get()));
      });
}

}  // namespace shoal
