// Recycling of arrays that the user has released.
#pragma once

#include <algorithm>

#include "numpy.h"
#include "object.h"

namespace shoal {

/// Whether an array has no other references and its original dtype and shape.
///
/// Everything that shares its memory, such as a view, a memoryview or a tensor, holds a reference.
/// An array with weak references is not recycled, since these would see it again.
inline bool is_recyclable(PyObject* object, PyArray_Descr* descr, int dimensions,
                          const npy_intp* shape) {
  if (object == nullptr || Py_REFCNT(object) != 1) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return reinterpret_cast<PyArrayObject_fields*>(object)->weakreflist == nullptr &&
         PyArray_DESCR(array) == descr && PyArray_NDIM(array) == dimensions &&
         std::equal(shape, shape + dimensions, PyArray_DIMS(array)) && PyArray_ISCARRAY(array) &&
         PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
}

/// A shape as a Python tuple.
inline Ref shape_tuple(const std::vector<npy_intp>& shape) {
  Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t k = 0; k < shape.size(); ++k) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), PyLong_FromSsize_t(shape[k]));
  }
  return tuple;
}

/// Makes `array` exclusively owned and uninitialised: recycles it if possible, otherwise replaces
/// it by a new array.
inline void renew_array(Ref& array, PyArray_Descr* descr, int dimensions, const npy_intp* shape) {
  if (is_recyclable(array.get(), descr, dimensions, shape)) return;
  Py_INCREF(descr);
  array = Ref::checked(PyArray_Empty(dimensions, const_cast<npy_intp*>(shape), descr, 0));
}

}  // namespace shoal
