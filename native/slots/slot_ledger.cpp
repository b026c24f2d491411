#include "slot_ledger.h"

#include <algorithm>

namespace shoal {

namespace {

[[noreturn]] void raise_not_pending(const char* method, Ref message) {
  Ref module = Ref::checked(PyImport_ImportModule("gymnasium.error"));
  Ref type = Ref::checked(PyObject_GetAttrString(module.get(), "NoAsyncCallError"));
  Ref error = Ref::checked(PyObject_CallFunction(type.get(), "Os", message.get(), method));
  PyErr_SetObject(type.get(), error.get());
  throw nb::python_error();
}

}  // namespace

void SlotLedger::check_idle(const Slots& slots) const {
  if (in_flight() == 0) return;
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    if (!is_in_flight(slots[k])) continue;
    Ref error = error_class("SlotInFlightError");
    raise(error.get(), "slot %zd is in flight: call recv before sending it again", slots[k]);
  }
}

void SlotLedger::check_in_flight(const Slots& slots) const {
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    if (is_in_flight(slots[k])) continue;
    raise_not_pending(
        "recv", Ref::checked(PyUnicode_FromFormat("recv: slot %zd is not in flight", slots[k])));
  }
}

void SlotLedger::check_round() const {
  if (is_in_round_) return;
  raise_not_pending("step",
                    Ref::checked(PyUnicode_FromString("no step of all slots is in flight")));
}

void SlotLedger::split_round() {
  is_in_round_ = false;
  mark_in_flight({nullptr, num_slots()}, round_request_);
}

void SlotLedger::mark_in_flight(const Slots& slots, int64_t request) {
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    const int64_t slot = slots[k];
    if (in_flight_.contains(slot)) {
      in_flight_.remove(slot);
      if (done_.contains(slot)) done_.remove(slot);
    }
    in_flight_.push_back(slot);
    requests_[static_cast<size_t>(slot)] = request;
  }
}

void SlotLedger::reassign(const Slots& slots, int64_t request) {
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    if (is_awaited(slots[k])) requests_[static_cast<size_t>(slots[k])] = request;
  }
}

bool SlotLedger::mark_done(int64_t slot, int64_t request) {
  if (!is_awaited(slot) || request_of(slot) != request) return false;
  done_.push_back(slot);
  return true;
}

void SlotLedger::clear(const Slots& slots) {
  if (slots.count > 0) is_in_round_ = false;
  for (Py_ssize_t k = 0; k < slots.count; ++k) {
    const int64_t slot = slots[k];
    if (!in_flight_.contains(slot)) continue;
    in_flight_.remove(slot);
    if (done_.contains(slot)) done_.remove(slot);
  }
}

void SlotLedger::clear_all() {
  is_in_round_ = false;
  in_flight_.clear();
  done_.clear();
}

SlotLedger::Wanted SlotLedger::wanted(std::optional<Py_ssize_t> min_slots,
                                      std::optional<Py_ssize_t> max_slots,
                                      const std::optional<Slots>& slots) const {
  const auto waiting = static_cast<Py_ssize_t>(in_flight_.size());
  if (waiting == 0) {
    raise_not_pending("recv",
                      Ref::checked(PyUnicode_FromString("recv: no reset or step is in flight")));
  }
  Wanted wanted{{}, false, 0, 0};
  if (slots) {
    check_in_flight(*slots);
    for (Py_ssize_t k = 0; k < slots->count; ++k) wanted.slots.push_back((*slots)[k]);
    return wanted;
  }
  if (!min_slots) {
    wanted.slots.reserve(in_flight_.size());
    for (const int64_t slot : in_flight_) wanted.slots.push_back(slot);
    return wanted;
  }
  if (*min_slots < 1 || *min_slots > waiting) {
    raise(PyExc_ValueError, "min_slots is %zd, but %zd slots are in flight", *min_slots, waiting);
  }
  wanted.by_count = true;
  wanted.least = static_cast<size_t>(*min_slots);
  wanted.most = static_cast<size_t>(std::max(*min_slots, max_slots.value_or(waiting)));
  return wanted;
}

size_t SlotLedger::missing(const Wanted& wanted) const {
  if (wanted.by_count) return wanted.least > done() ? wanted.least - done() : 0;
  if (done() == in_flight_.size()) return 0;
  const auto is_missing = [this](int64_t slot) { return is_awaited(slot); };
  return static_cast<size_t>(std::count_if(wanted.slots.begin(), wanted.slots.end(), is_missing));
}

std::vector<int64_t> SlotLedger::select(const Wanted& wanted) const {
  if (!wanted.by_count) return wanted.slots;
  std::vector<int64_t> chosen;
  chosen.reserve(std::min(wanted.most, done()));
  for (const int64_t slot : done_) {
    if (chosen.size() == wanted.most) break;
    chosen.push_back(slot);
  }
  return chosen;
}

}  // namespace shoal
