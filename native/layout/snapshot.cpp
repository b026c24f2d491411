#include "snapshot.h"

#include "../python/numpy.h"

namespace shoal {

namespace {

Ref copy_array(PyObject* array) {
  return Ref::checked(PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(array), NPY_KEEPORDER));
}

bool is_plain_array(PyObject* value) {
  return PyArray_CheckExact(value) &&
         !PyDataType_REFCHK(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(value)));
}

bool is_immutable(PyObject* value) {
  return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
         PyBool_Check(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
         PyArray_IsScalar(value, Generic);
}

template <class Copy>
Ref copy_dict(PyObject* dict, const Copy& copy) {
  Ref result = Ref::checked(PyDict_New());
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value)) {
    // Owned, because copying may run code that changes the dict.
    Ref held_key = Ref::borrow(key);
    Ref held_value = Ref::borrow(value);
    Ref copied = copy(value);
    check(PyDict_SetItem(result.get(), key, copied.get()));
  }
  return result;
}

/// Copies a part of an info: containers and arrays are copied, other objects are shared.
Ref snapshot_value(PyObject* value) {
  if (PyDict_Check(value)) return snapshot_info(value);
  if (is_plain_array(value)) return copy_array(value);
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return Ref::borrow(value);
  const Depth depth(" while copying an info");
  Ref items = Ref::checked(PySequence_List(value));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items.get()); ++k) {
    Ref held = Ref::borrow(PyList_GET_ITEM(items.get(), k));
    check(PyList_SetItem(items.get(), k, snapshot_value(held.get()).release()));
  }
  return PyList_CheckExact(value) ? items : Ref::checked(PyList_AsTuple(items.get()));
}

}  // namespace

Ref snapshot_info(PyObject* info) {
  const Depth depth(" while copying an info");
  return copy_dict(info, snapshot_value);
}

Ref snapshot_observation(PyObject* observation, bool deep) {
  const Depth depth(" while copying an observation");
  if (is_plain_array(observation)) return copy_array(observation);
  if (is_immutable(observation)) return Ref::borrow(observation);
  if (PyDict_CheckExact(observation)) {
    return copy_dict(observation,
                     [deep](PyObject* value) { return snapshot_observation(value, deep); });
  }
  if (PyTuple_CheckExact(observation)) {
    const Py_ssize_t length = PyTuple_GET_SIZE(observation);
    Ref result = Ref::checked(PyTuple_New(length));
    for (Py_ssize_t k = 0; k < length; ++k) {
      PyTuple_SET_ITEM(result.get(), k,
                       snapshot_observation(PyTuple_GET_ITEM(observation, k), deep).release());
    }
    return result;
  }
  if (!deep) return Ref::borrow(observation);
  Ref module = Ref::checked(PyImport_ImportModule("copy"));
  Ref deepcopy = Ref::checked(PyObject_GetAttrString(module.get(), "deepcopy"));
  return Ref::checked(PyObject_CallOneArg(deepcopy.get(), observation));
}

}  // namespace shoal
