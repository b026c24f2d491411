// Operations of a runner on slots other than stepping: rendering, snapshots, parameters.
#include "array_tools.h"
#include "runner.h"

namespace shoal {

nb::object KernelRunner::latest(nb::handle slots, Bank* bank) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  ledger_.check_idle(chosen);
  for (Py_ssize_t k = 0; k < chosen.count; ++k) {
    if (engine_->is_begun(chosen[k])) continue;
    Ref error = error_class("ResetMaskError");
    raise(error.get(), "slot %zd has not been reset yet and has no observation", chosen[k]);
  }
  Bank& target = renewed(bank, chosen.count);
  gather(engine_->result_buffer().observations, engine_->observation_bytes(), chosen,
         target.observations.data);
  return nb::steal(assemble(observations_, target.observations, chosen.count).release());
}

nb::object KernelRunner::draw(nb::handle slots) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  ledger_.check_idle(chosen);
  const shoal_kernel& kernel = engine_->kernel();
  if (kernel.draw == nullptr) raise(PyExc_RuntimeError, "the kernel draws no pictures");
  Ref pictures = new_array(NPY_UINT8, {chosen.count, kernel.height, kernel.width, 3});
  const auto job = std::make_shared<DrawJob>(engine_, numbers_of(chosen),
                                             data_of<uint8_t>(pictures), team_.workers() + 1);
  if (team_.workers() > 0 && chosen.count > 1) team_.post(job);
  while (!job->is_done()) {
    {
      const nb::gil_scoped_release released;
      make_progress(*job, INT64_MAX);
    }
    if (PyErr_CheckSignals() == 0) continue;
    job->cancel();
    const nb::gil_scoped_release released;
    while (!job->is_done()) make_progress(*job, INT64_MAX);
    break;
  }
  if (PyErr_Occurred()) throw nb::python_error();
  return nb::steal(pictures.release());
}

nb::object KernelRunner::save(nb::handle slots) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  ledger_.check_idle(chosen);
  const auto bytes = static_cast<npy_intp>(engine_->snapshot_bytes());
  Ref rows = new_array(NPY_UINT8, {chosen.count, bytes});
  for (Py_ssize_t k = 0; k < chosen.count; ++k) {
    engine_->save(chosen[k], data_of<char>(rows) + k * bytes);
  }
  return nb::steal(rows.release());
}

void KernelRunner::restore(nb::handle slots, nb::handle rows) {
  const SlotsInUse in_use(state_);
  check_usable();
  const Slots chosen = read_slots(slots, state_.count);
  const auto bytes = static_cast<npy_intp>(engine_->snapshot_bytes());
  ledger_.check_idle(chosen);
  const Column<char> saved(rows, NPY_UINT8, chosen.count * bytes);
  all_were_reset_ = false;  // checked again by the next step
  for (Py_ssize_t k = 0; k < chosen.count; ++k) {
    if (engine_->restore(chosen[k], saved.data + k * bytes)) continue;
    raise(PyExc_ValueError, "the row to restore in slot %zd was not saved by this kernel",
          chosen[k]);
  }
}

nb::object KernelRunner::states(nb::handle self) {
  const SlotsInUse in_use(state_);
  check_usable();
  ledger_.check_idle({nullptr, state_.count});
  npy_intp shape[] = {state_.count, static_cast<npy_intp>(engine_->kernel().state_bytes)};
  Ref array = Ref::checked(PyArray_SimpleNewFromData(2, shape, NPY_UINT8, engine_->states()));
  check(
      PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), Py_NewRef(self.ptr())));
  return nb::steal(array.release());
}

nb::object KernelRunner::random_state(int64_t slot) {
  const SlotsInUse in_use(state_);
  check_usable();
  check_slot(slot);
  const shoal_random& random = engine_->random(slot);
  return nb::make_tuple(nb::make_tuple(random.state[0], random.state[1]),
                        nb::make_tuple(random.increment[0], random.increment[1]), random.has_half,
                        random.half);
}

nb::object KernelRunner::seed(int64_t slot) const {
  check_slot(slot);
  const Ref& seed = seeds_[static_cast<size_t>(slot)];
  return seed ? nb::borrow(seed.get()) : nb::none();
}

void KernelRunner::set_seed(int64_t slot, nb::object seed) {
  check_slot(slot);
  seeds_[static_cast<size_t>(slot)] = seed.is_none() ? Ref() : Ref::borrow(seed.ptr());
}

void KernelRunner::check_slot(int64_t slot) const {
  if (slot >= 0 && slot < state_.count) return;
  raise(PyExc_IndexError, "slot %lld is out of range: there are %zd slots",
        static_cast<long long>(slot), state_.count);
}

std::vector<double> KernelRunner::parameters(int64_t slot) const {
  check_slot(slot);
  const double* values = engine_->parameters(slot);
  return {values, values + engine_->kernel().parameter_count};
}

void KernelRunner::set_parameter(int64_t slot, size_t number, double value) {
  const SlotsInUse in_use(state_);
  check_usable();
  check_slot(slot);
  ledger_.check_idle({nullptr, state_.count});
  if (number >= static_cast<size_t>(engine_->kernel().parameter_count)) {
    raise(PyExc_IndexError, "there is no parameter number %zu", number);
  }
  engine_->set_parameter(slot, number, value);
}

}  // namespace shoal
