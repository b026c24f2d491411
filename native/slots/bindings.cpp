// Python bindings of the slot ledger.
#include "bindings.h"

#include <nanobind/stl/optional.h>

#include <algorithm>

#include "../python/numpy.h"
#include "../stepper/intake.h"
#include "slot_ledger.h"

namespace shoal {

using namespace nb::literals;

namespace {

/// Slots as an int64 array; `keep` chooses among them.
template <class Slots, class Keep>
nb::object array_of(const Slots& slots, const Keep& keep) {
  std::vector<int64_t> chosen;
  for (const int64_t slot : slots) {
    if (keep(slot)) chosen.push_back(slot);
  }
  npy_intp count = static_cast<npy_intp>(chosen.size());
  Ref array = Ref::checked(PyArray_SimpleNew(1, &count, NPY_INT64));
  auto* numbers = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get()));
  std::copy(chosen.begin(), chosen.end(), static_cast<int64_t*>(numbers));
  return nb::steal(array.release());
}

/// The rows of `slots` that are awaited under this request.
nb::object due(const SlotLedger& ledger, nb::handle slots, int64_t request) {
  const Slots chosen = read_slots(slots, ledger.num_slots());
  std::vector<int64_t> rows;
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    const int64_t slot = chosen[row];
    if (ledger.is_awaited(slot) && ledger.request_of(slot) == request) rows.push_back(row);
  }
  return array_of(rows, [](int64_t) { return true; });
}

/// The slots in flight, or those of one request.
nb::object in_flight(const SlotLedger& ledger, std::optional<int64_t> request) {
  return array_of(ledger.slots_in_flight(),
                  [&](int64_t slot) { return !request || ledger.request_of(slot) == *request; });
}

/// The slots in flight that are not done, or those of one request.
nb::object awaited(const SlotLedger& ledger, std::optional<int64_t> request) {
  return array_of(ledger.slots_in_flight(), [&](int64_t slot) {
    return ledger.is_awaited(slot) && (!request || ledger.request_of(slot) == *request);
  });
}

SlotLedger::Wanted wanted(const SlotLedger& ledger, nb::handle min_slots, nb::handle max_slots,
                          nb::handle slots) {
  const auto number = [](nb::handle value) -> std::optional<Py_ssize_t> {
    if (value.is_none()) return std::nullopt;
    const Py_ssize_t count = PyNumber_AsSsize_t(value.ptr(), PyExc_OverflowError);
    if (count == -1 && PyErr_Occurred()) throw nb::python_error();
    return count;
  };
  std::optional<Slots> chosen;
  if (!slots.is_none()) chosen = read_slots(slots, ledger.num_slots());
  return ledger.wanted(number(min_slots), number(max_slots), chosen);
}

}  // namespace

void bind_slots(nb::module_& module) {
  nb::class_<SlotLedger::Wanted>(module, "Wanted");

  nb::class_<SlotLedger>(module, "SlotLedger")
      .def(nb::init<Py_ssize_t>(), "num_slots"_a)
      .def_prop_ro("in_flight", &SlotLedger::in_flight)
      .def_prop_ro("done", &SlotLedger::done)
      .def("is_awaited", &SlotLedger::is_awaited, "slot"_a)
      .def(
          "check_idle",
          [](const SlotLedger& ledger, nb::handle slots) {
            ledger.check_idle(read_slots(slots, ledger.num_slots()));
          },
          "slots"_a.none())
      .def("check_round", &SlotLedger::check_round)
      .def_prop_ro("is_in_round", &SlotLedger::is_in_round)
      .def("begin_round", &SlotLedger::begin_round, "request"_a = 0)
      .def_prop_ro("round_request", &SlotLedger::round_request)
      .def("end_round", &SlotLedger::end_round)
      .def("split_round", &SlotLedger::split_round)
      .def(
          "mark_in_flight",
          [](SlotLedger& ledger, nb::handle slots, int64_t request) {
            ledger.mark_in_flight(read_slots(slots, ledger.num_slots()), request);
          },
          "slots"_a.none(), "request"_a = 0)
      .def("due", &due, "slots"_a, "request"_a,
           nb::sig("def due(self, slots: Slots, request: int) -> "
                   "numpy.typing.NDArray[numpy.int64]"))
      .def(
          "mark_done",
          [](SlotLedger& ledger, nb::handle slots, int64_t request) {
            const Slots chosen = read_slots(slots, ledger.num_slots());
            for (Py_ssize_t k = 0; k < chosen.count; ++k) ledger.mark_done(chosen[k], request);
          },
          "slots"_a, "request"_a = 0)
      .def(
          "reassign",
          [](SlotLedger& ledger, nb::handle slots, int64_t request) {
            ledger.reassign(read_slots(slots, ledger.num_slots()), request);
          },
          "slots"_a, "request"_a)
      .def(
          "clear",
          [](SlotLedger& ledger, nb::handle slots) {
            ledger.clear(read_slots(slots, ledger.num_slots()));
          },
          "slots"_a)
      .def("clear_all", &SlotLedger::clear_all)
      .def("request_of", &SlotLedger::request_of, "slot"_a)
      .def("slots_in_flight", &in_flight, "request"_a = nb::none(),
           nb::sig("def slots_in_flight(self, request: int | None = None) -> "
                   "numpy.typing.NDArray[numpy.int64]"))
      .def(
          "awaited", &awaited, "request"_a = nb::none(),
          nb::sig(
              "def awaited(self, request: int | None = None) -> numpy.typing.NDArray[numpy.int64]"))
      .def("wanted", &wanted, "min_slots"_a.none(), "max_slots"_a.none(), "slots"_a.none())
      .def("missing", &SlotLedger::missing, "wanted"_a)
      .def(
          "select",
          [](const SlotLedger& ledger, const SlotLedger::Wanted& wanted) {
            return array_of(ledger.select(wanted), [](int64_t) { return true; });
          },
          "wanted"_a,
          nb::sig("def select(self, wanted: Wanted) -> numpy.typing.NDArray[numpy.int64]"));
}

}  // namespace shoal
