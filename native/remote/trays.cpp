#include "trays.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>

namespace shoal {

namespace {

constexpr size_t kSmallest = 1 << 16, kLargest = 1 << 26;  // bytes of a tray that is worth it
constexpr size_t kLine = 64;                               // bytes that leaves are aligned to

size_t rounded_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

/// An array over memory that belongs to somebody else. Its base is no array, so that a view of it
/// holds the array itself.
Ref array_over(char* data, const Leaf& leaf, Py_ssize_t rows, const Ref& owner) {
  std::vector<npy_intp> shape{rows};
  shape.insert(shape.end(), leaf.shape.begin(), leaf.shape.end());
  Ref base = Ref::checked(PyCapsule_New(owner.get(), nullptr, [](PyObject* capsule) {
    Py_DECREF(static_cast<PyObject*>(PyCapsule_GetPointer(capsule, nullptr)));
  }));
  Py_INCREF(owner.get());
  Py_INCREF(leaf.dtype());
  Ref array =
      Ref::checked(PyArray_NewFromDescr(&PyArray_Type, leaf.dtype(), static_cast<int>(shape.size()),
                                        shape.data(), nullptr, data, NPY_ARRAY_CARRAY, nullptr));
  check(PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), base.release()));
  return array;
}

}  // namespace

TrayPlan::TrayPlan(const Tree& observations, Py_ssize_t rows) {
  size_t size = 0;
  bool fits = observations.objects.empty();
  for (const Leaf& leaf : observations.leaves) {
    offsets_.push_back(size);
    size += rounded_up(static_cast<size_t>(leaf.bytes * rows), kLine);
    // What stays within reach of the other end cannot be checked once and for all; of numbers,
    // nothing has to be.
    fits = fits && leaf.type_num != NPY_BOOL && size <= kLargest;
  }
  if (fits && size >= kSmallest) {
    bytes_ = rounded_up(size, static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  }
}

Trays::Trays(const Tree& observations, Py_ssize_t rows)
    : observations_(observations), rows_(rows), plan_(observations, rows) {}

uint8_t Trays::free_one(const TrayArea& area) {
  if (area.data != area_.data) {
    area_ = area;
    const size_t most = std::numeric_limits<uint8_t>::max();
    trays_ = std::vector<Columns>(std::min(plan_.count_in(area), most));
    is_parted_.assign(trays_.size(), false);
  }
  for (size_t k = 0; k < trays_.size(); ++k) {
    if (is_parted_[k] || !is_free(trays_[k])) continue;
    make_arrays(trays_[k], area_.data + k * plan_.bytes());
    return static_cast<uint8_t>(k + 1);
  }
  return 0;
}

bool Trays::is_free(const Columns& tray) const {
  return std::all_of(tray.arrays.begin(), tray.arrays.end(),
                     [](const Ref& array) { return Py_REFCNT(array.get()) == 1; });
}

/// Makes the arrays of a tray that nobody holds anew: somebody may have changed them.
void Trays::make_arrays(Columns& tray, char* data) {
  tray.rows = rows_;
  tray.arrays.clear();
  tray.data.clear();
  for (size_t k = 0; k < observations_.leaves.size(); ++k) {
    tray.data.push_back(data + plan_.offset(k));
    tray.arrays.push_back(
        array_over(tray.data.back(), observations_.leaves[k], rows_, area_.owner));
  }
}

void Trays::part_from_held() {
  for (size_t k = 0; k < trays_.size(); ++k) {
    if (is_parted_[k] || is_free(trays_[k])) continue;
    char* data = area_.data + k * plan_.bytes();
    const std::vector<char> held(data, data + plan_.bytes());
    void* ours = ::mmap(data, plan_.bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (ours != data) raise(PyExc_MemoryError, "no memory for what a forked child may see");
    std::memcpy(data, held.data(), held.size());
    is_parted_[k] = true;
  }
}

}  // namespace shoal
