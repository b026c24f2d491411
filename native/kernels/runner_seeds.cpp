// The seeds of a runner's slots.
#include <sys/random.h>

#include <cstring>

#include "runner.h"

namespace shoal {

namespace {

/// Appends the 32-bit words of a Python integer, the lowest first.
void append_words(PyObject* seed, std::vector<uint32_t>& words) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(seed, &overflow);
  if (small == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow == 0 && small >= 0) {
    words.push_back(static_cast<uint32_t>(small));
    if (small >> 32 != 0) words.push_back(static_cast<uint32_t>(small >> 32));
    return;
  }
  if (overflow <= 0) raise(PyExc_ValueError, "a seed must not be negative, got %R", seed);
  const nb::handle number(seed);
  const auto bits = nb::cast<size_t>(number.attr("bit_length")());
  const size_t count = (bits + 31) / 32;
  const auto bytes = nb::cast<nb::bytes>(number.attr("to_bytes")(4 * count, "little"));
  const size_t begin = words.size();
  words.resize(begin + count);
  std::memcpy(words.data() + begin, bytes.c_str(), 4 * count);
}

/// A random seed of 128 bits, as NumPy draws it.
Ref random_seed() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    raise(PyExc_OSError, "getrandom() failed");
  }
  const nb::handle type(reinterpret_cast<PyObject*>(&PyLong_Type));
  return Ref::steal(
      type.attr("from_bytes")(nb::bytes(bytes, sizeof bytes), "little").release().ptr());
}

}  // namespace

Seeds KernelRunner::read_seeds(const Slots& slots, nb::list seeds) {
  if (nb::len(seeds) != static_cast<size_t>(slots.count)) {
    raise(PyExc_ValueError, "expected %zd seeds", slots.count);
  }
  Seeds read;
  std::vector<Ref> new_seeds;
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    PyObject* given = PyList_GET_ITEM(seeds.ptr(), k);
    Ref& seed = new_seeds.emplace_back();
    if (given != Py_None) {
      seed = Ref::borrow(given);
    } else if (!engine_->is_seeded(slots[k])) {
      seed = random_seed();
    }
    if (seed) append_words(seed.get(), read.words);
    read.ends.push_back(read.words.size());
  }
  // Stored only now, after all of them have been checked.
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    Ref& seed = new_seeds[static_cast<size_t>(k)];
    if (seed) seeds_[static_cast<size_t>(slots[k])] = std::move(seed);
  }
  return read;
}

}  // namespace shoal
