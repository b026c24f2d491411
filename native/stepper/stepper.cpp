#include "stepper.h"

#include <chrono>
#include <cmath>

#include "../layout/snapshot.h"

namespace shoal {

namespace {

constexpr const char* kStep = "step";
constexpr const char* kReset = "reset";

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Ref interned(const char* text) { return Ref::checked(PyUnicode_InternFromString(text)); }

/// Unpacks the tuple that an environment returned. The items are borrowed from `result`.
template <Py_ssize_t count>
void unpack(Ref& result, PyObject* (&items)[count], const char* expected) {
  if (PyList_Check(result.get()) ||
      (PyTuple_Check(result.get()) && !PyTuple_CheckExact(result.get()))) {
    result = Ref::checked(PySequence_Tuple(result.get()));
  }
  if (!PyTuple_CheckExact(result.get())) {
    Ref error = error_class("StepResultError");
    raise(error.get(), "got %s, expected %s", Py_TYPE(result.get())->tp_name, expected);
  }
  if (PyTuple_GET_SIZE(result.get()) != count) {
    Ref error = error_class("StepResultError");
    raise(error.get(), "got a tuple of %zd, expected %s", PyTuple_GET_SIZE(result.get()), expected);
  }
  for (Py_ssize_t k = 0; k < count; ++k) items[k] = PyTuple_GET_ITEM(result.get(), k);
}

double to_reward(PyObject* value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  Ref single;
  if (PyArray_Check(value)) {
    auto* array = reinterpret_cast<PyArrayObject*>(value);
    if (PyArray_SIZE(array) == 1) {
      single = Ref::checked(PyArray_GETITEM(array, PyArray_BYTES(array)));
      value = single.get();
    }
  }
  const double reward = PyFloat_AsDouble(value);
  if (reward == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    Ref error = error_class("StepResultError");
    raise(error.get(), "got a reward of type %s (%R), expected a number", Py_TYPE(value)->tp_name,
          value);
  }
  return reward;
}

uint8_t to_flag(PyObject* value) {
  if (value == Py_False) return 0;
  if (value == Py_True) return 1;
  const int truth = PyObject_IsTrue(value);
  check(truth);
  return static_cast<uint8_t>(truth);
}

/// Converts an info, which may be any mapping, to a dict.
Ref as_dict(PyObject* info) {
  if (PyDict_Check(info)) return Ref::borrow(info);
  if (!Ref::steal(PyObject_GetAttrString(info, "keys"))) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
    PyErr_Clear();
    Ref error = error_class("StepResultError");
    raise(error.get(), "got an info of type %s, expected a dict", Py_TYPE(info)->tp_name);
  }
  Ref dict = Ref::checked(PyDict_New());
  check(PyDict_Update(dict.get(), info));
  return dict;
}

/// Appends to a list, which is created for its first item.
void append(Ref& list, const Ref& item) {
  if (!list) list = Ref::checked(PyList_New(0));
  check(PyList_Append(list.get(), item.get()));
}

}  // namespace

/// The results that are collected for a batch.
struct Stepper::Output {
  Bank& bank;
  Py_ssize_t rows;
  Ref events;  // list of (row, info), created with the first info
  Ref done_mask, returns, lengths, times;
  StepEvents* step_events;  // if not null, receives the events and episodes instead

  void add_info(Py_ssize_t row, Ref info) {
    Ref event = Ref::checked(Py_BuildValue("(nO)", row, info.get()));
    append(step_events ? step_events->events : events, event);
  }

  template <class T>
  void set(Ref& column, int type_num, Py_ssize_t row, T value) {
    npy_intp length = rows;
    if (!column) column = Ref::checked(PyArray_ZEROS(1, &length, type_num, 0));
    static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(column.get())))[row] = value;
  }

  Ref infos() const {
    if (!events && !done_mask) return Ref::borrow(Py_None);
    Ref episodes = Ref::borrow(Py_None);
    if (done_mask) {
      episodes =
          Ref::checked(PyTuple_Pack(4, done_mask.get(), returns.get(), lengths.get(), times.get()));
    }
    Ref list = events ? events : Ref::checked(PyList_New(0));
    return Ref::checked(PyTuple_Pack(2, list.get(), episodes.get()));
  }
};

Slots read_slots(nb::handle slots, Py_ssize_t num_slots) {
  if (slots.is_none()) return {nullptr, num_slots};
  auto* array = reinterpret_cast<PyArrayObject*>(slots.ptr());
  if (!PyArray_Check(slots.ptr()) || PyArray_TYPE(array) != NPY_INT64 || PyArray_NDIM(array) != 1 ||
      !PyArray_ISCARRAY_RO(array)) {
    raise(PyExc_TypeError, "slots must be None or a one-dimensional int64 array");
  }
  const Slots chosen{static_cast<const int64_t*>(PyArray_DATA(array)), PyArray_SIZE(array)};
  for (Py_ssize_t k = 0; k < chosen.count; ++k) {
    if (chosen[k] < 0 || chosen[k] >= num_slots) {
      raise(PyExc_IndexError, "slot %zd is out of range: there are %zd slots", chosen[k],
            num_slots);
    }
  }
  return chosen;
}

nb::object Bank::objects(nb::handle slots) const {
  return nb::steal(get_extras(observations, read_slots(slots, rows)).release());
}

void Bank::put_objects(nb::handle slots, nb::handle extras) {
  set_extras(observations, read_slots(slots, rows), extras.ptr());
}

Stepper::Stepper(const Tree& tree, nb::handle actions, SlotState& state, nb::list envs,
                 Autoreset mode, bool statistics, bool deep, bool remembers)
    : tree_(tree),
      actions_owner_(Ref::borrow(actions.ptr())),
      actions_(nb::cast<ActionIntake&>(actions)),
      state_(state),
      envs_(Ref::borrow(envs.ptr())),
      mode_(mode),
      statistics_(statistics),
      deep_(deep),
      latest_(tree, remembers ? state.count : 0),
      was_reset_(static_cast<size_t>(state.count)),
      step_name_(interned(kStep)),
      reset_name_(interned(kReset)),
      seed_keyword_(Ref::checked(Py_BuildValue("(s)", "seed"))),
      reset_keywords_(Ref::checked(Py_BuildValue("(ss)", "seed", "options"))),
      final_obs_(interned("final_obs")),
      final_info_(interned("final_info")) {}

/// Calls `act` with each slot and its row; rows are counted from `first`. An exception gets a note
/// that names its slot; the observations of the slots before it are kept.
template <class Act>
void Stepper::drive(const Slots& slots, Py_ssize_t first, const char* method, Output& out,
                    const Act& act) {
  Py_ssize_t done = 0;
  try {
    for (; done < slots.count; ++done) act(slots[done], first + done);
  } catch (nb::python_error& error) {
    latest_.keep_rows({slots.numbers, done, slots.first}, out.bank.observations, first);
    add_slot_notes(error, slots[done], method);
    throw;
  }
  latest_.keep_rows(slots, out.bank.observations, first);
}

void Stepper::add_slot_notes(nb::python_error& error, Py_ssize_t slot, const char* method) const {
  Ref note = Ref::checked(
      PyUnicode_FromFormat("shoal: in slot %zd of %zd, in its %s", slot, state_.count, method));
  add_note(error, note.get());
  if (method != kStep || was_reset_[static_cast<size_t>(slot)] || !error.matches(PyExc_Exception)) {
    return;
  }
  // Without the slot's number, which differs if this is a part of a vector.
  Ref hint = Ref::checked(PyUnicode_FromString(
      "shoal: the slot has never been reset: call reset() before the first step"));
  add_note(error, hint.get());
}

nb::object Stepper::run(nb::handle work, Bank* bank) {
  const SlotsInUse in_use(state_);
  Py_ssize_t rows = state_.count;
  if (!work.is_none()) {
    rows = 0;
    for (nb::handle item : work) rows += read_slots(item[0], state_.count).count;
  }
  Output out{renewed(bank, rows), rows, {}, {}, {}, {}, {}, nullptr};

  if (work.is_none()) {
    drive({nullptr, rows}, 0, kStep, out,
          [&](Py_ssize_t slot, Py_ssize_t row) { step_slot(slot, row, out); });
  } else {
    Py_ssize_t first = 0;
    for (nb::handle item : work) {
      const nb::object numbers = item[0], seeds = item[1], options = item[2];
      const Slots slots = read_slots(numbers, state_.count);
      if (seeds.is_none()) {
        drive(slots, first, kStep, out,
              [&](Py_ssize_t slot, Py_ssize_t row) { step_slot(slot, row, out); });
      } else {
        drive(slots, first, kReset, out, [&](Py_ssize_t slot, Py_ssize_t row) {
          const nb::object seed = seeds[row - first];
          reset_slot(slot, row, seed.ptr(), options.ptr(), out);
        });
      }
      first += slots.count;
    }
  }

  const Bank& filled = out.bank;
  Ref batch = Ref::checked(PyTuple_New(5));
  PyTuple_SET_ITEM(batch.get(), 0, assemble(tree_, filled.observations, rows).release());
  PyTuple_SET_ITEM(batch.get(), 1, filled.rewards.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 2, filled.terminated.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 3, filled.truncated.head(rows, filled.rows).release());
  PyTuple_SET_ITEM(batch.get(), 4, out.infos().release());
  if (bank == nullptr) out.bank.forget_objects();
  return nb::steal(batch.release());
}

Ref Stepper::StepEvents::as_tuple() const {
  if (nothing()) return Ref::borrow(Py_None);
  auto list = [](const Ref& items) { return items ? items.get() : Py_None; };
  return Ref::checked(PyTuple_Pack(3, list(events), list(episodes), list(errors)));
}

void Stepper::fill(Bank& bank, Py_ssize_t slot, PyObject* seed, PyObject* options,
                   StepEvents& step_events) {
  if (bank.rows < state_.count) raise(PyExc_ValueError, "the bank has too few rows");
  Output out{bank, state_.count, {}, {}, {}, {}, {}, &step_events};
  try {
    if (seed == nullptr) {
      step_slot(slot, slot, out);
    } else {
      reset_slot(slot, slot, seed, options, out);
    }
    latest_.keep_rows({nullptr, 1, slot}, bank.observations, kRowsBySlot);
  } catch (nb::python_error& error) {
    add_slot_notes(error, slot, seed == nullptr ? kStep : kReset);
    if (!error.matches(PyExc_Exception)) throw;
    Ref pair = Ref::checked(Py_BuildValue("(nO)", slot, error.value().ptr()));
    append(step_events.errors, pair);
  }
}

nb::object Stepper::step(nb::handle actions, Bank* bank) {
  actions_.accept(actions, nb::none());
  return run(nb::none(), bank);
}

nb::object Stepper::latest(nb::handle slots, Bank* bank) {
  const SlotsInUse in_use(state_);
  const Slots chosen = read_slots(slots, state_.count);
  Bank& target = renewed(bank, chosen.count);
  for (Py_ssize_t row = 0; row < chosen.count; ++row) {
    if (latest_.write(chosen[row], target.observations, row, deep_)) continue;
    Ref error = error_class("ResetMaskError");
    raise(error.get(), "slot %zd has not been reset yet and has no observation", chosen[row]);
  }
  Ref batch = assemble(tree_, target.observations, chosen.count);
  if (bank == nullptr) target.forget_objects();
  return nb::steal(batch.release());
}

Bank& Stepper::renewed(Bank* bank, Py_ssize_t rows) {
  if (bank != nullptr) {
    if (bank->rows < rows) raise(PyExc_ValueError, "the bank has too few rows");
    return *bank;
  }
  return user_banks_.renewed(tree_, rows);
}

void Stepper::step_slot(Py_ssize_t slot, Py_ssize_t row, Output& out) {
  if (state_.finished[slot] && mode_ == Autoreset::kNextStep) {
    autoreset(slot, row, out);
    return;
  }
  Ref env = environment(slot);
  Ref action = decode_row(actions_.tree(), actions_.columns(), slot);
  PyObject* arguments[] = {nullptr, env.get(), action.get()};
  Ref result = Ref::checked(PyObject_VectorcallMethod(step_name_.get(), arguments + 1,
                                                      2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  PyObject* items[5];
  unpack(result, items, "(observation, reward, terminated, truncated, info)");

  const double reward = to_reward(items[1]);
  const uint8_t terminated = to_flag(items[2]);
  const uint8_t truncated = to_flag(items[3]);
  const Ref info = as_dict(items[4]);
  observe(slot, row, items[0], out);
  out.bank.rewards[row] = reward;
  out.bank.terminated[row] = terminated;
  out.bank.truncated[row] = truncated;
  const bool done = terminated || truncated;
  state_.finished[slot] = done;
  if (statistics_) {
    state_.episode_return[slot] += reward;
    state_.episode_length[slot] += 1;
    if (done) finish_episode(slot, row, out);
  }

  if (done && mode_ == Autoreset::kSameStep) {
    Ref final_event = Ref::checked(PyDict_New());
    check(PyDict_SetItem(final_event.get(), final_obs_.get(),
                         snapshot_observation(items[0], deep_).get()));
    check(PyDict_SetItem(final_event.get(), final_info_.get(), snapshot_info(info.get()).get()));
    out.add_info(row, std::move(final_event));
    begin_episode(slot, row, Ref::checked(PyObject_CallMethodNoArgs(env.get(), reset_name_.get())),
                  out);
  } else if (PyDict_GET_SIZE(info.get()) > 0) {
    out.add_info(row, snapshot_info(info.get()));
  }
}

void Stepper::autoreset(Py_ssize_t slot, Py_ssize_t row, Output& out) {
  Ref env = environment(slot);
  begin_episode(slot, row, Ref::checked(PyObject_CallMethodNoArgs(env.get(), reset_name_.get())),
                out);
  out.bank.clear_results(row);
}

void Stepper::reset_slot(Py_ssize_t slot, Py_ssize_t row, PyObject* seed, PyObject* options,
                         Output& out) {
  Ref env = environment(slot);
  // A copy, so that an environment cannot change the options of another one or of the caller.
  Ref env_options =
      PyDict_Check(options) ? Ref::checked(PyDict_Copy(options)) : Ref::borrow(options);
  PyObject* arguments[] = {nullptr, env.get(), seed, env_options.get()};
  // None is not passed, since some environments have no parameter for options.
  PyObject* keywords = (options == Py_None ? seed_keyword_ : reset_keywords_).get();
  begin_episode(
      slot, row,
      Ref::checked(PyObject_VectorcallMethod(reset_name_.get(), arguments + 1,
                                             1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords)),
      out);
  out.bank.clear_results(row);
}

void Stepper::begin_episode(Py_ssize_t slot, Py_ssize_t row, Ref result, Output& out) {
  PyObject* items[2];
  unpack(result, items, "(observation, info) from reset");
  const Ref info = as_dict(items[1]);
  observe(slot, row, items[0], out);
  state_.finished[slot] = 0;
  was_reset_[static_cast<size_t>(slot)] = 1;
  if (statistics_) {
    state_.episode_return[slot] = 0.0;
    state_.episode_length[slot] = 0;
    state_.episode_start[slot] = now();
  }
  if (PyDict_GET_SIZE(info.get()) > 0) out.add_info(row, snapshot_info(info.get()));
}

void Stepper::finish_episode(Py_ssize_t slot, Py_ssize_t row, Output& out) {
  const double seconds = std::rint((now() - state_.episode_start[slot]) * 1e6) / 1e6;
  const double total = state_.episode_return[slot];
  const int64_t length = state_.episode_length[slot];
  if (out.step_events != nullptr) {
    Ref episode =
        Ref::checked(Py_BuildValue("(ndLd)", slot, total, static_cast<long long>(length), seconds));
    append(out.step_events->episodes, episode);
    return;
  }
  out.set<npy_bool>(out.done_mask, NPY_BOOL, row, 1);
  out.set<double>(out.returns, NPY_FLOAT64, row, total);
  out.set<int64_t>(out.lengths, NPY_INT64, row, length);
  out.set<double>(out.times, NPY_FLOAT64, row, seconds);
}

void Stepper::observe(Py_ssize_t slot, Py_ssize_t row, PyObject* observation, Output& out) {
  store_row(tree_, observation, out.bank.observations, row, deep_);
  latest_.keep_object(slot, observation);
}

Ref Stepper::environment(Py_ssize_t slot) const {
  // Not cached, since users may replace entries of `envs` at any time.
  if (!envs_ || slot >= PyList_GET_SIZE(envs_.get())) {
    raise(PyExc_IndexError, "the environment of slot %zd was removed", slot);
  }
  return Ref::borrow(PyList_GET_ITEM(envs_.get(), slot));
}

void Stepper::remember(nb::list observations) {
  const SlotsInUse in_use(state_);
  latest_.restore(observations);
  for (size_t slot = 0; slot < was_reset_.size(); ++slot) {
    was_reset_[slot] = !observations[slot].is_none();
  }
}

int Stepper::traverse(visitproc visit, void* arg) const {
  Py_VISIT(actions_owner_.get());
  Py_VISIT(envs_.get());
  if (const int stop = user_banks_.traverse(visit, arg)) return stop;
  return latest_.traverse(visit, arg);
}

void Stepper::clear() {
  envs_ = Ref();
  latest_.clear();
}

}  // namespace shoal
