// Writes a batch of actions to the arena, after checking all of it.
#include <cstring>
#include <limits>

#include "bounds.h"
#include "codec.h"
#include "snapshot.h"

namespace shoal {

namespace {

/// The values of a leaf, checked and cast, before they are written.
struct CheckedLeaf {
  size_t leaf;
  Ref values;
  bool exact;  // the values have the leaf's dtype, and are C-contiguous
};

struct Intake {
  const Tree& tree;
  const Slots& slots;
  const uint8_t* ignored;
  DtypeMismatch dtype_mismatch;
  std::vector<CheckedLeaf> leaves;
  std::vector<std::pair<size_t, Ref>> objects;

  bool is_checked(Py_ssize_t k) const { return ignored == nullptr || ignored[slots[k]] == 0; }
};

[[noreturn]] void reject_shape(const Intake& intake, const Leaf& leaf, PyObject* batch,
                               PyObject* array) {
  Ref error = error_class("InvalidActionError");
  std::vector<npy_intp> batch_shape = {intake.slots.count};
  batch_shape.insert(batch_shape.end(), leaf.shape.begin(), leaf.shape.end());
  Ref expected = shape_tuple(batch_shape);
  if (batch == Py_None) {
    raise(error.get(),
          "actions%s: got None, expected shape %S: one action for each of %zd slots of %s",
          leaf.path.c_str(), expected.get(), intake.slots.count, leaf.space.c_str());
  }
  Ref shape = Ref::checked(PyObject_GetAttrString(array, "shape"));
  raise(error.get(), "actions%s: got shape %S, expected %S: one action for each of %zd slots of %s",
        leaf.path.c_str(), shape.get(), expected.get(), intake.slots.count, leaf.space.c_str());
}

[[noreturn]] void reject_dtype(const Leaf& leaf, PyArrayObject* array) {
  Ref error = error_class("ActionTypeError");
  raise(error.get(), "actions%s: got dtype %S, expected %S (%s)", leaf.path.c_str(),
        PyArray_DESCR(array), leaf.descr.get(), leaf.space.c_str());
}

[[noreturn]] void reject_value(const Intake& intake, const Leaf& leaf, Py_ssize_t flat,
                               PyObject* value, long long low, long long high) {
  Ref error = error_class("InvalidActionError");
  const Py_ssize_t slot = intake.slots[flat / leaf.elements];
  if (leaf.shape.empty()) {
    raise(error.get(), "slot %zd: action%s is %S, expected an integer from %lld to %lld (%s)", slot,
          leaf.path.c_str(), value, low, high, leaf.space.c_str());
  }
  raise(error.get(),
        "slot %zd: element %zd of action%s is %S, expected an integer from %lld to %lld (%s)", slot,
        flat % leaf.elements, leaf.path.c_str(), value, low, high, leaf.space.c_str());
}

/// Calls `visit` with a null pointer to the C type of an integer type number.
template <class Visit>
void with_integer_type(int type_num, const Visit& visit) {
  switch (type_num) {
    case NPY_BOOL:
      return visit(static_cast<const npy_bool*>(nullptr));
    case NPY_BYTE:
      return visit(static_cast<const npy_byte*>(nullptr));
    case NPY_UBYTE:
      return visit(static_cast<const npy_ubyte*>(nullptr));
    case NPY_SHORT:
      return visit(static_cast<const npy_short*>(nullptr));
    case NPY_USHORT:
      return visit(static_cast<const npy_ushort*>(nullptr));
    case NPY_INT:
      return visit(static_cast<const npy_int*>(nullptr));
    case NPY_UINT:
      return visit(static_cast<const npy_uint*>(nullptr));
    case NPY_LONG:
      return visit(static_cast<const npy_long*>(nullptr));
    case NPY_ULONG:
      return visit(static_cast<const npy_ulong*>(nullptr));
    case NPY_LONGLONG:
      return visit(static_cast<const npy_longlong*>(nullptr));
    default:
      return visit(static_cast<const npy_ulonglong*>(nullptr));
  }
}

/// Whether low <= value <= high, for a value of any integer type.
template <class T>
bool within(T value, int64_t low, int64_t high) {
  if constexpr (std::is_unsigned_v<T>) {
    if (static_cast<uint64_t>(value) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return false;
    }
  }
  return static_cast<int64_t>(value) >= low && static_cast<int64_t>(value) <= high;
}

/// Checks that integers are within the leaf's bounds or, if it has none, fit its dtype.
void check_integers(const Intake& intake, const Leaf& leaf, PyArrayObject* array) {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  if (leaf.low.empty()) {
    with_integer_type(leaf.type_num, [&](auto pointer) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(pointer)>>;
      if (std::is_unsigned_v<T>) low = 0;
      if (sizeof(T) < sizeof(int64_t)) {
        low = static_cast<int64_t>(std::numeric_limits<T>::min());
        high = static_cast<int64_t>(std::numeric_limits<T>::max());
      }
    });
  }
  with_integer_type(PyArray_TYPE(array), [&](auto pointer) {
    using T = std::remove_pointer_t<decltype(pointer)>;
    const T* values = static_cast<T*>(PyArray_DATA(array));
    if constexpr (std::is_same_v<std::remove_const_t<T>, int64_t>) {
      if (leaf.elements == 1 && !leaf.low.empty() &&
          all_within(values, intake.slots.count, leaf.low[0], leaf.high[0])) {
        return;
      }
    }
    for (Py_ssize_t k = 0; k < intake.slots.count; ++k) {
      if (!intake.is_checked(k)) continue;
      for (Py_ssize_t e = 0; e < leaf.elements; ++e) {
        const Py_ssize_t flat = k * leaf.elements + e;
        const int64_t least = leaf.low.empty() ? low : leaf.low[static_cast<size_t>(e)];
        const int64_t most = leaf.high.empty() ? high : leaf.high[static_cast<size_t>(e)];
        if (within(values[flat], least, most)) continue;
        Ref value =
            Ref::checked(PyArray_GETITEM(array, reinterpret_cast<const char*>(values + flat)));
        reject_value(intake, leaf, flat, value.get(), least, most);
      }
    }
  });
}

Ref as_array(const Leaf& leaf, PyObject* batch) {
  if (PyArray_CheckExact(batch)) return Ref::borrow(batch);
  Ref array = Ref::steal(PyArray_FromAny(batch, nullptr, 0, 0, NPY_ARRAY_ENSUREARRAY, nullptr));
  if (array) return array;
  nb::python_error error;
  if (error.matches(PyExc_ValueError)) {
    Ref message = Ref::checked(PyObject_Str(error.value().ptr()));
    Ref type = error_class("InvalidActionError");
    raise(type.get(), "actions%s: cannot be converted to an array for %s: %S", leaf.path.c_str(),
          leaf.space.c_str(), message.get());
  }
  Ref note = Ref::checked(PyUnicode_FromFormat("while reading actions%s for %s", leaf.path.c_str(),
                                               leaf.space.c_str()));
  add_note(error, note.get());
  throw error;
}

void accept_leaf(Intake& intake, size_t index, PyObject* batch) {
  const Leaf& leaf = intake.tree.leaves[index];
  Ref source = as_array(leaf, batch);
  auto* array = reinterpret_cast<PyArrayObject*>(source.get());

  const int dimensions = static_cast<int>(leaf.shape.size()) + 1;
  if (PyArray_NDIM(array) != dimensions || PyArray_DIM(array, 0) != intake.slots.count ||
      !std::equal(leaf.shape.begin(), leaf.shape.end(), PyArray_DIMS(array) + 1)) {
    reject_shape(intake, leaf, batch, source.get());
  }

  const bool exact = PyArray_EquivTypes(PyArray_DESCR(array), leaf.dtype());
  const bool integers = leaf.is_integer() && (PyArray_ISINTEGER(array) || PyArray_ISBOOL(array));
  if (!exact && !integers && !PyArray_CanCastArrayTo(array, leaf.dtype(), NPY_SAME_KIND_CASTING)) {
    reject_dtype(leaf, array);
  }
  if (integers && (!exact || !leaf.low.empty())) {
    Ref contiguous = source;
    if (!PyArray_ISCARRAY_RO(array)) {
      const int flags = NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED;
      contiguous = Ref::checked(PyArray_FROM_OF(source.get(), flags));
    }
    check_integers(intake, leaf, reinterpret_cast<PyArrayObject*>(contiguous.get()));
  }
  const bool cast = !exact && intake.dtype_mismatch == DtypeMismatch::kCast;
  if (cast || (exact && !PyArray_ISCARRAY_RO(array))) {
    Py_INCREF(leaf.descr.get());
    const int flags = NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST;
    source = Ref::checked(PyArray_FromArray(array, leaf.dtype(), flags));
  }
  intake.leaves.push_back({index, std::move(source), exact || cast});
}

void accept_object(Intake& intake, size_t index, PyObject* batch) {
  const ObjectLeaf& leaf = intake.tree.objects[index];
  Ref iterator = Ref::checked(PyObject_CallOneArg(leaf.split.get(), batch));
  Ref items = Ref::checked(PySequence_List(iterator.get()));
  if (PyList_GET_SIZE(items.get()) != intake.slots.count) {
    Ref error = error_class("InvalidActionError");
    raise(error.get(), "actions%s: got %zd actions, expected one for each of %zd slots",
          leaf.path.c_str(), PyList_GET_SIZE(items.get()), intake.slots.count);
  }
  intake.objects.emplace_back(index, std::move(items));
}

Ref entry(const Node& node, PyObject* batch, size_t k) {
  Ref item = Ref::steal(PyObject_GetItem(batch, node.keys[k].get()));
  if (item) return item;
  clear_lookup_error();
  Ref error = error_class("InvalidActionError");
  raise(error.get(), "actions%s: got %s without the key %R, expected a dict with the keys %S",
        node.path.c_str(), Py_TYPE(batch)->tp_name, node.keys[k].get(), list_of(node.keys).get());
}

void accept(Intake& intake, const Node& node, PyObject* batch) {
  switch (node.kind) {
    case Node::Kind::kLeaf:
      return accept_leaf(intake, node.index, batch);
    case Node::Kind::kObject:
      return accept_object(intake, node.index, batch);
    case Node::Kind::kDict:
      for (size_t k = 0; k < node.children.size(); ++k) {
        Ref item = entry(node, batch, k);
        accept(intake, node.children[k], item.get());
      }
      return;
    case Node::Kind::kTuple: {
      const auto expected = static_cast<Py_ssize_t>(node.children.size());
      const Py_ssize_t length = PySequence_Check(batch) ? PySequence_Size(batch) : -1;
      if (length != expected) {
        clear_lookup_error();
        Ref error = error_class("InvalidActionError");
        raise(error.get(), "actions%s: got %s, expected a tuple of %zd batches", node.path.c_str(),
              Py_TYPE(batch)->tp_name, expected);
      }
      for (Py_ssize_t k = 0; k < expected; ++k) {
        Ref item = Ref::checked(PySequence_GetItem(batch, k));
        accept(intake, node.children[static_cast<size_t>(k)], item.get());
      }
      return;
    }
  }
}

/// Stores each slot's part of an array with another dtype as a separate object.
void write_uncast(const Intake& intake, const CheckedLeaf& checked, Columns& columns) {
  Ref& uncast = columns.uncast[checked.leaf];
  if (!uncast) uncast = list_of_none(columns.rows);
  for (Py_ssize_t k = 0; k < intake.slots.count; ++k) {
    Ref item = Ref::checked(PySequence_GetItem(checked.values.get(), k));
    Ref copy = snapshot_observation(item.get(), false);
    check(PyList_SetItem(uncast.get(), intake.slots[k], copy.release()));
  }
}

void write(const Intake& intake, Columns& columns) {
  for (const CheckedLeaf& checked : intake.leaves) {
    if (!checked.exact) {
      write_uncast(intake, checked, columns);
      continue;
    }
    const Ref& uncast = columns.uncast[checked.leaf];
    for (Py_ssize_t k = 0; uncast && k < intake.slots.count; ++k) {
      check(PyList_SetItem(uncast.get(), intake.slots[k], Py_NewRef(Py_None)));
    }
    const Py_ssize_t bytes = intake.tree.leaves[checked.leaf].bytes;
    auto* values = reinterpret_cast<PyArrayObject*>(checked.values.get());
    // Reading the other leaves may have run user code that has resized this array.
    if (PyArray_NBYTES(values) != bytes * intake.slots.count) {
      raise(PyExc_RuntimeError, "actions changed while they were being read");
    }
    const char* source = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(checked.values.get()));
    if (intake.slots.numbers == nullptr) {
      std::memcpy(columns.row(intake.tree, checked.leaf, intake.slots.first), source,
                  bytes * intake.slots.count);
      continue;
    }
    for (Py_ssize_t k = 0; k < intake.slots.count; ++k) {
      std::memcpy(columns.row(intake.tree, checked.leaf, intake.slots[k]), source + k * bytes,
                  bytes);
    }
  }
  for (const auto& [index, items] : intake.objects) {
    for (Py_ssize_t k = 0; k < intake.slots.count; ++k) {
      check(PyList_SetItem(columns.objects[index].get(), intake.slots[k],
                           Py_NewRef(PyList_GET_ITEM(items.get(), k))));
    }
  }
}

}  // namespace

void encode_batch(const Tree& tree, PyObject* batch, const Slots& slots, const uint8_t* ignored,
                  DtypeMismatch dtype_mismatch, Columns& columns) {
  Intake intake{tree, slots, ignored, dtype_mismatch, {}, {}};
  accept(intake, tree.root, batch);
  write(intake, columns);
}

}  // namespace shoal
