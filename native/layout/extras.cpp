#include "extras.h"

namespace shoal {

namespace {

Ref rows_of(const Ref& list, const Slots& rows) {
  Ref part = Ref::checked(PyList_New(rows.count));
  for (Py_ssize_t k = 0; k < rows.count; ++k) {
    PyList_SET_ITEM(part.get(), k, Py_NewRef(PyList_GET_ITEM(list.get(), rows[k])));
  }
  return part;
}

void set_rows(const Ref& list, const Slots& rows, PyObject* values) {
  for (Py_ssize_t k = 0; k < rows.count; ++k) {
    Ref value = Ref::checked(PySequence_GetItem(values, k));
    check(PyList_SetItem(list.get(), rows[k], value.release()));
  }
}

void clear_rows(const Ref& list, const Slots& rows) {
  for (Py_ssize_t k = 0; k < rows.count; ++k) {
    check(PyList_SetItem(list.get(), rows[k], Py_NewRef(Py_None)));
  }
}

}  // namespace

bool has_extras(const Columns& columns, const Slots& rows) {
  if (!columns.objects.empty()) return true;
  for (const Ref& list : columns.uncast) {
    for (Py_ssize_t k = 0; list && k < rows.count; ++k) {
      if (PyList_GET_ITEM(list.get(), rows[k]) != Py_None) return true;
    }
  }
  return false;
}

Ref get_extras(const Columns& columns, const Slots& rows) {
  std::vector<Ref> objects, uncast;
  for (const Ref& list : columns.objects) objects.push_back(rows_of(list, rows));
  for (const Ref& list : columns.uncast) {
    uncast.push_back(list ? rows_of(list, rows) : Ref::borrow(Py_None));
  }
  return Ref::checked(PyTuple_Pack(2, list_of(objects).get(), list_of(uncast).get()));
}

void set_extras(Columns& columns, const Slots& rows, PyObject* extras) {
  Ref objects = Ref::checked(PySequence_GetItem(extras, 0));
  Ref uncast = Ref::checked(PySequence_GetItem(extras, 1));
  for (size_t k = 0; k < columns.objects.size(); ++k) {
    Ref values = Ref::checked(PySequence_GetItem(objects.get(), static_cast<Py_ssize_t>(k)));
    set_rows(columns.objects[k], rows, values.get());
  }
  for (size_t k = 0; k < columns.uncast.size(); ++k) {
    Ref values = Ref::checked(PySequence_GetItem(uncast.get(), static_cast<Py_ssize_t>(k)));
    if (values.get() == Py_None) continue;
    if (!columns.uncast[k]) columns.uncast[k] = list_of_none(columns.rows);
    set_rows(columns.uncast[k], rows, values.get());
  }
}

void clear_extras(Columns& columns, const Slots& rows) {
  for (const Ref& list : columns.objects) clear_rows(list, rows);
  for (const Ref& list : columns.uncast) {
    if (list) clear_rows(list, rows);
  }
}

}  // namespace shoal
