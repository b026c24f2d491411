#include "moments.h"

#include <algorithm>

#include "../python/numpy.h"

namespace shoal {

namespace {

/// Checks the type and size of an array, and returns its data.
template <class T>
T* data_of(nb::handle object, int type_num, npy_intp size, const char* name) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (!PyArray_Check(object.ptr()) || PyArray_TYPE(array) != type_num ||
      !PyArray_ISCARRAY_RO(array) || PyArray_SIZE(array) != size) {
    raise(PyExc_ValueError, "%s: expected a contiguous array of %zd numbers of the matching dtype",
          name, size);
  }
  return static_cast<T*>(PyArray_DATA(array));
}

struct Shape {
  int type_num;
  npy_intp rows, columns;
};

Shape shape_of(nb::handle batch) {
  auto* array = reinterpret_cast<PyArrayObject*>(batch.ptr());
  if (!PyArray_Check(batch.ptr()) || PyArray_NDIM(array) < 1 || PyArray_DIM(array, 0) < 1) {
    raise(PyExc_ValueError, "expected a batch of at least one row");
  }
  const npy_intp rows = PyArray_DIM(array, 0);
  return {PyArray_TYPE(array), rows, PyArray_SIZE(array) / rows};
}

template <class T>
void moments(const T* batch, npy_intp rows, npy_intp columns, T* mean, T* var) {
  const T count = static_cast<T>(rows);
  std::copy(batch, batch + columns, mean);
  for (npy_intp row = 1; row < rows; ++row) {
    const T* values = batch + row * columns;
    for (npy_intp k = 0; k < columns; ++k) mean[k] += values[k];
  }
  for (npy_intp k = 0; k < columns; ++k) mean[k] /= count;
  std::fill(var, var + columns, T(0));
  for (npy_intp row = 0; row < rows; ++row) {
    const T* values = batch + row * columns;
    for (npy_intp k = 0; k < columns; ++k) {
      const T distance = values[k] - mean[k];
      var[k] += distance * distance;
    }
  }
  for (npy_intp k = 0; k < columns; ++k) var[k] /= count;
}

/// Computes in type M, and propagates NaN.
template <class T, class M>
void normalize(const T* batch, npy_intp rows, npy_intp columns, const M* mean, const M* deviation,
               M limit, float* out) {
  for (npy_intp row = 0; row < rows; ++row) {
    const T* values = batch + row * columns;
    float* results = out + row * columns;
    for (npy_intp k = 0; k < columns; ++k) {
      M result = (static_cast<M>(values[k]) - mean[k]) / deviation[k];
      result = result < -limit ? -limit : result;
      result = result > limit ? limit : result;
      results[k] = static_cast<float>(result);
    }
  }
}

}  // namespace

void batch_moments(nb::handle batch, nb::handle mean, nb::handle var) {
  const auto [type_num, rows, columns] = shape_of(batch);
  if (columns < 2) raise(PyExc_ValueError, "expected rows of at least two elements");
  auto run = [&, type = type_num, rows = rows, columns = columns](auto zero) {
    using T = decltype(zero);
    moments(data_of<const T>(batch, type, rows * columns, "batch"), rows, columns,
            data_of<T>(mean, type, columns, "mean"), data_of<T>(var, type, columns, "var"));
  };
  if (type_num == NPY_FLOAT32) {
    run(0.0F);
  } else if (type_num == NPY_FLOAT64) {
    run(0.0);
  } else {
    raise(PyExc_TypeError, "expected a batch of float32 or float64");
  }
}

void normalize_batch(nb::handle batch, nb::handle mean, nb::handle deviation, double limit,
                     nb::handle out) {
  const auto [type_num, rows, columns] = shape_of(batch);
  const int mean_type = shape_of(mean).type_num;
  auto run = [&, type = type_num, rows = rows, columns = columns](auto zero, auto computed) {
    using T = decltype(zero);
    using M = decltype(computed);
    normalize(data_of<const T>(batch, type, rows * columns, "batch"), rows, columns,
              data_of<const M>(mean, mean_type, columns, "mean"),
              data_of<const M>(deviation, mean_type, columns, "deviation"), static_cast<M>(limit),
              data_of<float>(out, NPY_FLOAT32, rows * columns, "out"));
  };
  if (type_num == NPY_FLOAT32 && mean_type == NPY_FLOAT64) {
    run(0.0F, 0.0);
  } else if (type_num == NPY_FLOAT32 && mean_type == NPY_FLOAT32) {
    run(0.0F, 0.0F);
  } else if (type_num == NPY_FLOAT64 && mean_type == NPY_FLOAT64) {
    run(0.0, 0.0);
  } else if (type_num == NPY_UINT8 && mean_type == NPY_FLOAT64) {
    run(npy_uint8(0), 0.0);
  } else {
    raise(PyExc_TypeError, "unsupported combination of dtypes of the batch and the mean");
  }
}

}  // namespace shoal
