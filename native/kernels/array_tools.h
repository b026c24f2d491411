// Helpers for NumPy arrays and rows of slots.
#pragma once

#include <cstring>

#include "../layout/codec.h"

namespace shoal {

inline std::vector<int64_t> numbers_of(const Slots& slots) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(slots.count));
  for (Py_ssize_t k = 0; k < slots.count; ++k) numbers.push_back(slots[k]);
  return numbers;
}

inline Ref new_array(int type_num, std::vector<npy_intp> shape) {
  return Ref::checked(PyArray_SimpleNew(static_cast<int>(shape.size()), shape.data(), type_num));
}

template <class T>
T* data_of(const Ref& array) {
  return static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())));
}

/// Copies the rows of these slots to rows 0, 1, ... of other columns.
inline void gather(const std::vector<char*>& from, const std::vector<size_t>& bytes,
                   const Slots& slots, const std::vector<char*>& to) {
  for (size_t leaf = 0; leaf < bytes.size(); ++leaf) {
    if (slots.numbers == nullptr) {
      std::memcpy(to[leaf], from[leaf] + static_cast<size_t>(slots.first) * bytes[leaf],
                  static_cast<size_t>(slots.count) * bytes[leaf]);
      continue;
    }
    for (Py_ssize_t k = 0; k < slots.count; ++k) {
      std::memcpy(to[leaf] + static_cast<size_t>(k) * bytes[leaf],
                  from[leaf] + static_cast<size_t>(slots[k]) * bytes[leaf], bytes[leaf]);
    }
  }
}

}  // namespace shoal
