// The Python face of the native code: shoal._native.
#define SHOAL_IMPORT_NUMPY
#include "infos/batch.h"
#include "layout/tree.h"
#include "stepper/stepper.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Classes that keep objects of users take part in garbage collection.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<T>(self)->traverse(visit, arg);
}

// Only the stepper lets go: every cycle through the others runs through it, or through a list.
int clear_stepper(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<shoal::Stepper>(self)->clear();
  return 0;
}

PyType_Slot bank_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::Bank>)},
                            {0, nullptr}};
PyType_Slot intake_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::ActionIntake>)}, {0, nullptr}};
PyType_Slot stepper_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::Stepper>)},
                               {Py_tp_clear, reinterpret_cast<void*>(clear_stepper)},
                               {0, nullptr}};

}  // namespace

NB_MODULE(_native, module) {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  // A vector that is still alive when the interpreter ends is no leak, and no news to its user.
  nb::set_leak_warnings(false);
  module.doc() = "Native core of Shoal. Private: use the classes of the shoal package.";

  nb::enum_<shoal::Autoreset>(module, "Autoreset")
      .value("NEXT_STEP", shoal::Autoreset::kNextStep)
      .value("SAME_STEP", shoal::Autoreset::kSameStep)
      .value("DISABLED", shoal::Autoreset::kDisabled);

  nb::class_<shoal::Tree>(module, "Tree").def(nb::init<nb::handle>(), "root"_a);

  nb::class_<shoal::Bank>(module, "Bank", nb::type_slots(bank_slots))
      .def(nb::init<const shoal::Tree&, nb::sequence, nb::handle, nb::handle, nb::handle,
                    Py_ssize_t>(),
           "tree"_a, "observations"_a, "rewards"_a, "terminated"_a, "truncated"_a, "rows"_a);

  nb::class_<shoal::SlotState>(module, "SlotState")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, Py_ssize_t>(), "finished"_a,
           "episode_return"_a, "episode_length"_a, "episode_start"_a, "slots"_a);

  nb::class_<shoal::ActionIntake>(module, "ActionIntake", nb::type_slots(intake_slots))
      .def(nb::init<const shoal::Tree&, nb::sequence, shoal::SlotState&, shoal::Autoreset>(),
           "tree"_a, "columns"_a, "state"_a, "mode"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 4>())
      .def("accept", &shoal::ActionIntake::accept, "actions"_a.none(), "slots"_a.none());

  nb::class_<shoal::Stepper>(module, "Stepper", nb::type_slots(stepper_slots))
      .def(nb::init<const shoal::Tree&, nb::handle, shoal::SlotState&, nb::list, shoal::Autoreset,
                    bool, bool>(),
           "tree"_a, "actions"_a, "state"_a, "envs"_a, "mode"_a, "statistics"_a, "deep"_a,
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("step", &shoal::Stepper::step, "actions"_a.none(), "bank"_a.none())
      .def("run", &shoal::Stepper::run, "work"_a.none(), "bank"_a.none())
      .def_prop_rw("memory", &shoal::Stepper::memory, &shoal::Stepper::remember)
      .def("latest", &shoal::Stepper::latest, "slots"_a.none(), "bank"_a.none());

  module.def("batch_infos", &shoal::batch_infos, "events"_a, "num_rows"_a, "merge"_a);
}
