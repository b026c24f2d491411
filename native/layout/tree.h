// The native layout of a space: a tree whose leaves are columns.
//
// It is built from the Python Layout (shoal/_spaces/layout.py, the only module that depends on
// space types) and is immutable. A leaf has a dtype and a shape and is stored in an array of the
// arena. An object leaf has no fixed shape and is stored in a Python list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../python/array.h"

namespace shoal {

/// One fixed-shape array inside a space.
struct Leaf {
  std::string path;   // as an index expression: "['position'][0]", empty for the root
  std::string space;  // the description of the space, for messages
  Ref descr;
  int type_num = 0;
  bool is_int64 = false;  // in native byte order
  std::vector<npy_intp> shape;
  Py_ssize_t elements = 1;
  Py_ssize_t bytes = 0;
  // Inclusive integer bounds of each element; empty if every value of the dtype is valid.
  std::vector<int64_t> low, high;
  // Cached scalars low[0]..high[0] of a small integer leaf. NumPy scalars are immutable, so every
  // step can use the same objects.
  std::vector<Ref> scalars;

  PyArray_Descr* dtype() const { return reinterpret_cast<PyArray_Descr*>(descr.get()); }
  bool is_integer() const { return PyTypeNum_ISINTEGER(type_num); }
};

/// A part of a space without a fixed shape, whose values are Python objects.
struct ObjectLeaf {
  std::string path;
  Ref split;  // batch -> iterator over one item per slot
  Ref join;   // list of items, one per row -> batch
};

struct Node {
  enum class Kind { kLeaf, kObject, kDict, kTuple };
  Kind kind;
  size_t index = 0;       // into Tree::leaves or Tree::objects
  std::string path;       // of a kDict or kTuple
  std::vector<Ref> keys;  // of a kDict, in the space's order
  std::vector<Node> children;
};

struct Tree {
  /// Reads a node of shoal._spaces.layout.
  explicit Tree(nb::handle root_node);

  // Declared before the root, since reading the root fills them.
  std::vector<Leaf> leaves;
  std::vector<ObjectLeaf> objects;
  Node root;

 private:
  Node read(PyObject* node);
};

/// Memory for one row per slot: an array for each leaf and a list for each object leaf.
struct Columns {
  Columns() = default;
  /// Uses existing arrays, which must have the leaves' dtypes and the shape (rows, *leaf shape).
  Columns(const Tree& tree, nb::sequence arrays, Py_ssize_t rows);

  /// Makes all arrays exclusively owned and uninitialised: arrays that the user has released are
  /// recycled, arrays that are still referenced are replaced.
  void renew(const Tree& tree, Py_ssize_t row_count);

  char* row(const Tree& tree, size_t leaf, Py_ssize_t index) const {
    return data[leaf] + index * tree.leaves[leaf].bytes;
  }

  /// Visits the owned Python objects for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

  Py_ssize_t rows = 0;
  std::vector<Ref> arrays;
  std::vector<char*> data;   // the first byte of each array
  std::vector<Ref> objects;  // a list with an item per row for each object leaf
  // For each leaf: null, or a list with the values of the rows whose dtype differs from the leaf's,
  // and None for the other rows.
  std::vector<Ref> uncast;
};

/// A list of this length, filled with None.
Ref list_of_none(Py_ssize_t length);

}  // namespace shoal
