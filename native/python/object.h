// Ownership and errors at the border to Python.
//
// Ref owns one reference. A failed call of the Python interface becomes a C++ exception
// (nb::python_error, which nanobind turns back into the Python exception), so that every Ref on
// the way out is released. All of this runs with the GIL held.
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
  /// Takes over a new reference as it is; null stays null.
  static Ref steal(PyObject* object) { return Ref(object); }
  /// Takes over a new reference that a Python call returned; null means it raised.
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

/// Throws the Python exception that a call reported by returning a negative number.
inline void check(int status) {
  if (status < 0) throw nb::python_error();
}

/// Raises `type` with a message in the manner of PyErr_Format.
template <class... Args>
[[noreturn]] void raise(PyObject* type, const char* format, Args... args) {
  PyErr_Format(type, format, args...);
  throw nb::python_error();
}

/// An exception class of shoal.errors, by its name.
inline Ref error_class(const char* name) {
  Ref module = Ref::checked(PyImport_ImportModule("shoal.errors"));
  return Ref::checked(PyObject_GetAttrString(module.get(), name));
}

/// Drops the exception of a look-up that found nothing; any other one goes on its way.
inline void forgive_lookup() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_LookupError) &&
      !PyErr_ExceptionMatches(PyExc_TypeError)) {
    throw nb::python_error();
  }
  PyErr_Clear();
}

/// These objects as a list.
inline Ref list_of(const std::vector<Ref>& items) {
  Ref list = Ref::checked(PyList_New(0));
  for (const Ref& item : items) check(PyList_Append(list.get(), item.get()));
  return list;
}

/// Adds a line below an exception's message (PEP 678); its type, arguments and traceback stay.
inline void add_note(const nb::python_error& error, PyObject* note) {
  Ref name = Ref::checked(PyUnicode_InternFromString("add_note"));
  Ref::steal(PyObject_CallMethodOneArg(error.value().ptr(), name.get(), note));
  PyErr_Clear();  // A note is a help: an exception that refuses it is still the one to report.
}

/// Counts one level of a recursion into a user's objects, and raises RecursionError in time.
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
