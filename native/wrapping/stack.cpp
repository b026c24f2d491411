#include "stack.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "../python/numpy.h"

namespace shoal {

namespace {

using Sources = std::vector<const char*>;

void stack_blocks(const Sources& frames, npy_intp chunks, size_t chunk_bytes, char* out) {
  for (npy_intp chunk = 0; chunk < chunks; ++chunk) {
    for (const char* frame : frames) {
      std::memcpy(out, frame + chunk * chunk_bytes, chunk_bytes);
      out += chunk_bytes;
    }
  }
}

/// Interleaves a constant number of frames, so that the compiler can vectorise the loops.
template <class T, size_t count>
void interleave(const Sources& frames, npy_intp chunks, char* out) {
  const T* sources[count];
  for (size_t k = 0; k < count; ++k) sources[k] = reinterpret_cast<const T*>(frames[k]);
  T* target = reinterpret_cast<T*>(out);
  for (npy_intp chunk = 0; chunk < chunks; ++chunk) {
    for (size_t k = 0; k < count; ++k) target[chunk * count + k] = sources[k][chunk];
  }
}

/// Stacks chunks of one number, such as images whose last axis is a single channel.
template <class T>
void stack_numbers(const Sources& frames, npy_intp chunks, char* out) {
  switch (frames.size()) {
    case 2:
      return interleave<T, 2>(frames, chunks, out);
    case 3:
      return interleave<T, 3>(frames, chunks, out);
    case 4:
      return interleave<T, 4>(frames, chunks, out);
    default:
      return stack_blocks(frames, chunks, sizeof(T), out);
  }
}

}  // namespace

void stack_frames(nb::handle ring, Py_ssize_t oldest, Py_ssize_t chunk, nb::handle out) {
  auto* frames = reinterpret_cast<PyArrayObject*>(ring.ptr());
  auto* target = reinterpret_cast<PyArrayObject*>(out.ptr());
  if (!PyArray_Check(ring.ptr()) || !PyArray_Check(out.ptr()) || !PyArray_ISCARRAY(frames) ||
      !PyArray_ISCARRAY(target) || PyArray_NBYTES(frames) != PyArray_NBYTES(target) ||
      PyArray_NDIM(frames) < 1 || PyDataType_REFCHK(PyArray_DESCR(frames))) {
    raise(PyExc_ValueError, "expected two contiguous arrays of the same size");
  }
  const npy_intp count = PyArray_DIM(frames, 0);
  if (oldest < 0 || oldest >= count || chunk < 1) {
    raise(PyExc_ValueError, "expected an index below %zd and a positive chunk, got %zd and %zd",
          count, oldest, chunk);
  }
  const size_t chunk_bytes = static_cast<size_t>(chunk) * PyArray_ITEMSIZE(frames);
  const size_t frame_bytes = PyArray_NBYTES(frames) / count;
  const npy_intp chunks = static_cast<npy_intp>(frame_bytes / chunk_bytes);
  if (chunks * chunk_bytes != frame_bytes) {
    raise(PyExc_ValueError, "the size of a frame must be a multiple of the chunk size");
  }
  Sources sources;
  for (npy_intp k = 0; k < count; ++k) {
    sources.push_back(PyArray_BYTES(frames) + ((oldest + k) % count) * frame_bytes);
  }
  switch (chunk_bytes) {
    case 1:
      return stack_numbers<uint8_t>(sources, chunks, PyArray_BYTES(target));
    case 2:
      return stack_numbers<uint16_t>(sources, chunks, PyArray_BYTES(target));
    case 4:
      return stack_numbers<uint32_t>(sources, chunks, PyArray_BYTES(target));
    case 8:
      return stack_numbers<uint64_t>(sources, chunks, PyArray_BYTES(target));
    default:
      return stack_blocks(sources, chunks, chunk_bytes, PyArray_BYTES(target));
  }
}

}  // namespace shoal
