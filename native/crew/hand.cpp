#include "hand.h"

namespace shoal {

namespace {

// A worker that waits looks up this often, to see whether a signal has come.
constexpr int64_t kLookUp = 1'000'000'000;

}  // namespace

Hand::Hand(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks, int worker,
           Py_ssize_t first, Py_ssize_t last)
    : board_owner_(Ref::borrow(board.ptr())),
      stepper_owner_(Ref::borrow(stepper.ptr())),
      actions_owner_(Ref::borrow(actions.ptr())),
      banks_(Ref::borrow(banks.ptr())),
      board_(nb::cast<Board&>(board)),
      stepper_(nb::cast<Stepper&>(stepper)),
      worker_(worker),
      share_{nullptr, last - first, first},
      has_objects_(!bank(0).observations.objects.empty()) {}

Bank& Hand::bank(Py_ssize_t number) const {
  Ref found = Ref::checked(PySequence_GetItem(banks_.get(), number));
  return nb::cast<Bank&>(nb::handle(found.get()));
}

Ref Hand::fill(const Slots& slots, Py_ssize_t number, PyObject* seeds, PyObject* options) {
  return stepper_.fill(bank(number), slots, seeds, options, [this](Py_ssize_t slot) {
    board_.begin(worker_, static_cast<uint32_t>(slot));
  });
}

nb::object Hand::serve() {
  for (;;) {
    Entry task;
    while (!board_.next(worker_, task)) {
      check(PyErr_CheckSignals());
      const nb::gil_scoped_release released;
      board_.wait_for_task(worker_, kLookUp);
    }
    const Kind kind = kind_of(task);
    if (kind == Kind::kMail) return nb::none();
    const Py_ssize_t number = number_of(task);
    const bool alone = kind == Kind::kSlot;
    const Slots slots = alone ? Slots{nullptr, 1, number} : share_;
    const Py_ssize_t target = alone ? 0 : number;

    Ref infos, error = Ref::borrow(Py_None);
    try {
      infos = fill(slots, target, nullptr, nullptr);
    } catch (nb::python_error& raised) {
      infos = Ref::borrow(Py_None);
      error = Ref::borrow(raised.value().ptr());
    }
    if (error.get() == Py_None && infos.get() == Py_None && !has_objects_) {
      board_.finish(worker_, entry_of(kind, alone ? static_cast<Entry>(number) : 0),
                    static_cast<uint32_t>(slots.count));
      continue;
    }
    Ref slot = alone ? Ref::checked(PyLong_FromSsize_t(number)) : Ref::borrow(Py_None);
    return nb::steal(Py_BuildValue("(OnOO)", slot.get(), target, infos.get(), error.get()));
  }
}

nb::object Hand::drive(nb::handle slots, Py_ssize_t target, nb::handle seeds, nb::handle options) {
  const Slots chosen = slots.is_none() ? share_ : read_slots(slots, share_.first + share_.count);
  Ref infos = fill(chosen, target, seeds.is_none() ? nullptr : seeds.ptr(), options.ptr());
  return nb::steal(infos.release());
}

void Hand::finish(nb::handle slot, bool has_mail) {
  const Entry mail = has_mail ? kHasMail : 0;
  if (slot.is_none()) {
    board_.finish(worker_, entry_of(Kind::kShare, 0) | mail, static_cast<uint32_t>(share_.count));
  } else {
    board_.finish(worker_, entry_of(Kind::kSlot, nb::cast<Entry>(slot)) | mail, 1);
  }
}

int Hand::traverse(visitproc visit, void* arg) const {
  Py_VISIT(board_owner_.get());
  Py_VISIT(stepper_owner_.get());
  Py_VISIT(actions_owner_.get());
  Py_VISIT(banks_.get());
  return 0;
}

}  // namespace shoal
