#include "turns.h"

#include "../python/numpy.h"

namespace shoal {

namespace {

Ref attribute(nb::handle object, const char* name) {
  return Ref::checked(PyObject_GetAttrString(object.ptr(), name));
}

Ref call(const Ref& function) {
  return Ref::checked(PyObject_Vectorcall(function.get(), nullptr, 0, nullptr));
}

Ref call(const Ref& function, PyObject* argument) {
  PyObject* arguments[] = {nullptr, argument};
  return Ref::checked(PyObject_Vectorcall(function.get(), arguments + 1,
                                          1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

Ref call(const Ref& function, PyObject* first, PyObject* second) {
  PyObject* arguments[] = {nullptr, first, second};
  return Ref::checked(PyObject_Vectorcall(function.get(), arguments + 1,
                                          2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

long number(const Ref& value) {
  const long result = PyLong_AsLong(value.get());
  if (result == -1 && PyErr_Occurred()) throw nb::python_error();
  return result;
}

}  // namespace

AtariTurns::AtariTurns(nb::handle emulator, nb::handle screens, nb::handle painter,
                       nb::handle sticky, int frame_skip, bool merges, bool ends_with_life)
    : act_(attribute(emulator, "act")),
      lives_(attribute(emulator, "lives")),
      is_over_(attribute(emulator, "game_over")),
      get_screen_(attribute(emulator, "getScreen")),
      sticky_(Ref::borrow(sticky.ptr())),
      painter_owner_(Ref::borrow(painter.ptr())),
      painter_(painter.is_none() ? nullptr : &nb::cast<ScreenPainter&>(painter)),
      frame_skip_(frame_skip),
      merges_(merges),
      ends_with_life_(ends_with_life),
      newest_(Ref::checked(PySequence_GetItem(screens.ptr(), 0))),
      before_(Ref::checked(PySequence_GetItem(screens.ptr(), 1))),
      next_(Ref::checked(PySequence_GetItem(screens.ptr(), 2))) {}

nb::object AtariTurns::play(nb::handle action, nb::handle strength, long lives, int64_t frames_left,
                            nb::handle frame) {
  Ref executed = Ref::borrow(action.ptr()), force = Ref::borrow(strength.ptr());
  long reward = 0, lives_left = lives;
  int frames = 0;
  bool is_over = false, life_is_lost = false, is_captured = false, stops_early = false;
  while (frames < frame_skip_ && !stops_early) {
    if (sticky_.get() != Py_None) {
      Ref pair = call(sticky_, action.ptr(), strength.ptr());
      executed = Ref::checked(PySequence_GetItem(pair.get(), 0));
      force = Ref::checked(PySequence_GetItem(pair.get(), 1));
    }
    reward += number(call(act_, executed.get(), force.get()));
    ++frames;
    lives_left = number(call(lives_));
    life_is_lost = lives_left > 0 && lives_left < lives;
    is_over = call(is_over_).get() == Py_True;
    stops_early = is_over || (ends_with_life_ && life_is_lost) || frames >= frames_left;
    if (painter_ == nullptr || stops_early) continue;
    if (frames == frame_skip_) {
      call(get_screen_, newest_.get());
    } else if (merges_ && frames == frame_skip_ - 1) {
      call(get_screen_, next_.get());
      is_captured = true;
    }
  }
  const bool is_painted = painter_ != nullptr && !stops_early;
  if (is_painted) {
    if (merges_) std::swap(before_, next_);
    painter_->paint(newest_.get(), merges_ ? before_.get() : Py_None, frame);
  }
  auto flag = [](bool value) { return value ? Py_True : Py_False; };
  return nb::steal(Py_BuildValue("(lliOOOO)", reward, lives_left, frames, flag(is_over),
                                 flag(life_is_lost), flag(is_painted), flag(is_captured)));
}

nb::tuple AtariTurns::screens() const {
  return nb::make_tuple(nb::borrow(newest_.get()), nb::borrow(before_.get()),
                        nb::borrow(next_.get()));
}

}  // namespace shoal
