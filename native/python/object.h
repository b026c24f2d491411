// Ownership of Python objects, and Python exceptions.
//
// Ref owns one reference. A failed call of the Python C API becomes a C++ exception
// (nb::python_error, which nanobind converts back to the Python exception), so that stack unwinding
// releases every Ref. All functions require the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

namespace shoal {

namespace nb = nanobind;

/// Owns one reference to a Python object, or nothing.
class Ref {
 public:
  Ref() = default;
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref(const Ref& other) noexcept : object_(other.object_) { Py_XINCREF(object_); }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  /// Takes ownership of a new reference, which may be null.
  static Ref steal(PyObject* object) { return Ref(object); }
  /// Takes ownership of a new reference that a Python call returned; throws if it is null.
  static Ref checked(PyObject* object) {
    if (object == nullptr) throw nb::python_error();
    return Ref(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

/// Throws the current Python exception if the status is negative.
inline void check(int status) {
  if (status < 0) throw nb::python_error();
}

/// Raises `type` with a message formatted by PyErr_Format.
template <class... Args>
[[noreturn]] void raise(PyObject* type, const char* format, Args... args) {
  PyErr_Format(type, format, args...);
  throw nb::python_error();
}

/// The exception class of this name in shoal.errors.
inline Ref error_class(const char* name) {
  Ref module = Ref::checked(PyImport_ImportModule("shoal.errors"));
  return Ref::checked(PyObject_GetAttrString(module.get(), name));
}

/// Clears the exception of a failed lookup, and rethrows any other one.
inline void clear_lookup_error() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_LookupError) &&
      !PyErr_ExceptionMatches(PyExc_TypeError)) {
    throw nb::python_error();
  }
  PyErr_Clear();
}

/// Makes a Python list of objects.
inline Ref list_of(const std::vector<Ref>& items) {
  Ref list = Ref::checked(PyList_New(0));
  for (const Ref& item : items) check(PyList_Append(list.get(), item.get()));
  return list;
}

/// Adds a note to an exception (PEP 678).
inline void add_note(const nb::python_error& error, PyObject* note) {
  Ref name = Ref::checked(PyUnicode_InternFromString("add_note"));
  Ref::steal(PyObject_CallMethodOneArg(error.value().ptr(), name.get(), note));
  PyErr_Clear();  // An error of add_note must not hide the exception itself.
}

/// Guards one level of a recursion into Python objects; raises RecursionError if it is too deep.
class Depth {
 public:
  explicit Depth(const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) throw nb::python_error();
  }
  ~Depth() { Py_LeaveRecursiveCall(); }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
};

}  // namespace shoal
