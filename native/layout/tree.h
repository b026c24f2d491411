// A space's layout as the native code sees it: a tree whose leaves are columns.
//
// Built once from the Python Layout (shoal/_spaces/layout.py, which alone knows the space types)
// and never changed afterwards. A leaf has a dtype and a shape and lives in an array of the arena;
// an object leaf has no fixed shape and lives in a Python list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../python/array.h"

namespace shoal {

/// One fixed-shape array inside a space.
struct Leaf {
  std::string path;   // as a user would index it: "['position'][0]", empty for a bare space
  std::string space;  // the space's own description, for messages
  Ref descr;
  int type_num = 0;
  bool is_int64 = false;  // in the machine's byte order
  std::vector<npy_intp> shape;
  Py_ssize_t elements = 1;
  Py_ssize_t bytes = 0;
  // Inclusive integer bounds of each element, empty where any value of the dtype may pass.
  std::vector<int64_t> low, high;
  // Ready-made scalars low[0]..high[0] of a small integer leaf: NumPy scalars never change, so one
  // object can serve every step.
  std::vector<Ref> scalars;

  PyArray_Descr* dtype() const { return reinterpret_cast<PyArray_Descr*>(descr.get()); }
  bool is_integer() const { return PyTypeNum_ISINTEGER(type_num); }
};

/// A part of a space without a fixed shape; its values travel as Python objects.
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

  // Before the root: reading it fills them.
  std::vector<Leaf> leaves;
  std::vector<ObjectLeaf> objects;
  Node root;

 private:
  Node read(PyObject* node);
};

/// Memory for one row per slot: an array for each leaf and a list for each object leaf.
struct Columns {
  Columns() = default;
  /// Over existing arrays, which must have the leaves' dtypes and the shape (rows, *leaf shape).
  Columns(const Tree& tree, nb::sequence arrays, Py_ssize_t rows);

  /// Makes everything memory that nobody else sees, uninitialised: what the user has let go of is
  /// used again, what the user still holds is replaced.
  void renew(const Tree& tree, Py_ssize_t row_count);

  char* row(const Tree& tree, size_t leaf, Py_ssize_t index) const {
    return data[leaf] + index * tree.leaves[leaf].bytes;
  }

  /// Shows the garbage collector the objects of users that are kept here.
  int traverse(visitproc visit, void* arg) const;

  Py_ssize_t rows = 0;
  std::vector<Ref> arrays;
  std::vector<char*> data;   // the first byte of each array
  std::vector<Ref> objects;  // a list with an item per row for each object leaf
  // By leaf: null, or a list that holds the values of those rows that came in another dtype than
  // the leaf's, and None for the other rows.
  std::vector<Ref> as_given;
};

/// A list of this length, filled with None.
Ref list_of_none(Py_ssize_t length);

}  // namespace shoal
