#include "tree.h"

namespace shoal {

namespace {

// Maximum number of values of a Discrete leaf whose scalars are cached.
constexpr int64_t kMaxCachedScalars = 1024;

Ref attribute(PyObject* object, const char* name) {
  return Ref::checked(PyObject_GetAttrString(object, name));
}

std::string text(PyObject* object, const char* name) {
  Ref value = attribute(object, name);
  const char* characters = PyUnicode_AsUTF8(value.get());
  if (characters == nullptr) throw nb::python_error();
  return characters;
}

std::vector<int64_t> integers(PyObject* array) {
  Ref typed = Ref::checked(PyArray_FROMANY(array, NPY_INT64, 0, 0, NPY_ARRAY_C_CONTIGUOUS));
  auto* values = reinterpret_cast<PyArrayObject*>(typed.get());
  const auto* first = static_cast<const int64_t*>(PyArray_DATA(values));
  return {first, first + PyArray_SIZE(values)};
}

void cache_scalars(Leaf& leaf) {
  // Unsigned, since the span of a leaf with the full range of int64 overflows a signed integer.
  const uint64_t span = static_cast<uint64_t>(leaf.high[0]) - static_cast<uint64_t>(leaf.low[0]);
  if (span >= static_cast<uint64_t>(kMaxCachedScalars)) return;
  for (uint64_t k = 0; k <= span; ++k) {
    Ref number = Ref::checked(PyLong_FromLongLong(leaf.low[0] + static_cast<int64_t>(k)));
    Py_INCREF(leaf.descr.get());
    Ref array = Ref::checked(
        PyArray_FromAny(number.get(), leaf.dtype(), 0, 0, NPY_ARRAY_FORCECAST, nullptr));
    void* data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get()));
    leaf.scalars.push_back(Ref::checked(PyArray_Scalar(data, leaf.dtype(), nullptr)));
  }
}

Leaf read_leaf(PyObject* node) {
  Leaf leaf;
  leaf.path = text(node, "path");
  leaf.space = text(node, "description");
  leaf.descr = attribute(node, "dtype");
  if (!PyArray_DescrCheck(leaf.descr.get())) raise(PyExc_TypeError, "a leaf needs a NumPy dtype");
  if (PyDataType_REFCHK(leaf.dtype())) {
    raise(PyExc_TypeError, "a leaf cannot have the dtype %S: use an object leaf instead",
          leaf.descr.get());
  }
  leaf.type_num = leaf.dtype()->type_num;
  leaf.is_int64 = leaf.type_num == NPY_INT64 && PyArray_ISNBO(leaf.dtype()->byteorder);
  leaf.bytes = PyDataType_ELSIZE(leaf.dtype());

  Ref shape = attribute(node, "shape");
  for (Py_ssize_t k = 0; k < PyTuple_Size(shape.get()); ++k) {
    const Py_ssize_t extent = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape.get(), k));
    if (extent < 0) raise(PyExc_ValueError, "the shape of a leaf must not be negative");
    leaf.shape.push_back(extent);
    leaf.elements *= extent;
  }
  leaf.bytes *= leaf.elements;

  Ref low = attribute(node, "low");
  if (low.get() != Py_None) {
    leaf.low = integers(low.get());
    leaf.high = integers(attribute(node, "high").get());
    if (leaf.shape.empty() && leaf.is_int64) cache_scalars(leaf);
  }
  return leaf;
}

}  // namespace

Ref list_of_none(Py_ssize_t length) {
  Ref list = Ref::checked(PyList_New(length));
  for (Py_ssize_t k = 0; k < length; ++k) PyList_SET_ITEM(list.get(), k, Py_NewRef(Py_None));
  return list;
}

Tree::Tree(nb::handle root_node) : root(read(root_node.ptr())) {}

Node Tree::read(PyObject* node) {
  const std::string kind = text(node, "kind");
  Node result;
  if (kind == "leaf") {
    result.kind = Node::Kind::kLeaf;
    result.index = leaves.size();
    leaves.push_back(read_leaf(node));
    return result;
  }
  if (kind == "object") {
    result.kind = Node::Kind::kObject;
    result.index = objects.size();
    objects.push_back({text(node, "path"), attribute(node, "split"), attribute(node, "join")});
    return result;
  }
  result.kind = kind == "dict" ? Node::Kind::kDict : Node::Kind::kTuple;
  result.path = text(node, "path");
  if (result.kind == Node::Kind::kDict) {
    Ref keys = attribute(node, "keys");
    for (Py_ssize_t k = 0; k < PyTuple_Size(keys.get()); ++k) {
      result.keys.push_back(Ref::borrow(PyTuple_GET_ITEM(keys.get(), k)));
    }
  }
  Ref children = attribute(node, "children");
  for (Py_ssize_t k = 0; k < PyTuple_Size(children.get()); ++k) {
    result.children.push_back(read(PyTuple_GET_ITEM(children.get(), k)));
  }
  return result;
}

Columns::Columns(const Tree& tree, nb::sequence source, Py_ssize_t row_count)
    : rows(row_count), uncast(tree.leaves.size()) {
  if (nb::len(source) != tree.leaves.size()) {
    raise(PyExc_ValueError, "expected %zu columns, got %zu", tree.leaves.size(), nb::len(source));
  }
  for (size_t k = 0; k < tree.leaves.size(); ++k) {
    const Leaf& leaf = tree.leaves[k];
    Ref item = Ref::checked(PySequence_GetItem(source.ptr(), static_cast<Py_ssize_t>(k)));
    auto* array = reinterpret_cast<PyArrayObject*>(item.get());
    if (!PyArray_Check(item.get()) || !PyArray_EquivTypes(PyArray_DESCR(array), leaf.dtype()) ||
        !PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY) ||
        PyArray_SIZE(array) != row_count * leaf.elements) {
      raise(PyExc_ValueError, "column %zu does not fit its leaf (%s)", k, leaf.space.c_str());
    }
    data.push_back(PyArray_BYTES(array));
    arrays.push_back(std::move(item));
  }
  for (size_t k = 0; k < tree.objects.size(); ++k) {
    objects.push_back(list_of_none(row_count));
  }
}

int Columns::traverse(visitproc visit, void* arg) const {
  for (const Ref& list : objects) Py_VISIT(list.get());
  for (const Ref& list : uncast) Py_VISIT(list.get());
  return 0;
}

void Columns::renew(const Tree& tree, Py_ssize_t row_count) {
  rows = row_count;
  arrays.resize(tree.leaves.size());
  data.resize(tree.leaves.size());
  uncast.resize(tree.leaves.size());
  npy_intp shape[NPY_MAXDIMS];
  for (size_t k = 0; k < tree.leaves.size(); ++k) {
    const Leaf& leaf = tree.leaves[k];
    if (leaf.shape.size() + 1 > NPY_MAXDIMS) raise(PyExc_ValueError, "too many dimensions");
    shape[0] = row_count;
    std::copy(leaf.shape.begin(), leaf.shape.end(), shape + 1);
    renew_array(arrays[k], leaf.dtype(), static_cast<int>(leaf.shape.size()) + 1, shape);
    data[k] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(arrays[k].get()));
  }
  objects.resize(tree.objects.size());
  for (Ref& list : objects) list = list_of_none(row_count);
}

}  // namespace shoal
