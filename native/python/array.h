// Arrays that are handed to the user, and come back when the user has let go of them.
#pragma once

#include <algorithm>

#include "numpy.h"
#include "object.h"

namespace shoal {

/// Whether an array that was handed out belongs to nobody else any more, and is as it was made.
///
/// Whoever can still see its memory holds a reference: a view, a memoryview, a tensor. A weak
/// reference does not count as one, but whoever has it must not see the array come back to life.
inline bool was_let_go(PyObject* object, PyArray_Descr* descr, int dimensions,
                       const npy_intp* shape) {
  if (object == nullptr || Py_REFCNT(object) != 1) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return reinterpret_cast<PyArrayObject_fields*>(object)->weakreflist == nullptr &&
         PyArray_DESCR(array) == descr && PyArray_NDIM(array) == dimensions &&
         std::equal(shape, shape + dimensions, PyArray_DIMS(array)) && PyArray_ISCARRAY(array) &&
         PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
}

/// A shape as Python shows it.
inline Ref shape_tuple(const std::vector<npy_intp>& shape) {
  Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t k = 0; k < shape.size(); ++k) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), PyLong_FromSsize_t(shape[k]));
  }
  return tuple;
}

/// Makes `array` one that only this reference holds: the same one again if it was let go, or a new
/// one, uninitialised either way.
inline void renew_array(Ref& array, PyArray_Descr* descr, int dimensions, const npy_intp* shape) {
  if (was_let_go(array.get(), descr, dimensions, shape)) return;
  Py_INCREF(descr);
  array = Ref::checked(PyArray_Empty(dimensions, const_cast<npy_intp*>(shape), descr, 0));
}

}  // namespace shoal
