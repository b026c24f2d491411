// Python bindings of the native code: shoal._native.
#define SHOAL_IMPORT_NUMPY
#include "slots/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "atari/screen.h"
#include "atari/turns.h"
#include "infos/batch.h"
#include "kernels/hockey/scripted_players.h"
#include "kernels/runner.h"
#include "layout/tree.h"
#include "live/meter.h"
#include "remote/fast_path.h"
#include "stepper/stepper.h"
#include "workers/lifeline.h"
#include "workers/worker_group.h"
#include "workers/worker_loop.h"
#include "wrapping/moments.h"
#include "wrapping/stack.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Visits the Python objects of a class that may hold users' objects, for garbage collection.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<T>(self)->traverse(visit, arg);
}

// Only the stepper is cleared: every reference cycle of the others contains a stepper or a list.
int clear_stepper(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<shoal::Stepper>(self)->clear();
  return 0;
}

PyType_Slot fast_path_client_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::FastPathClient>)}, {0, nullptr}};
PyType_Slot bank_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::Bank>)},
                            {0, nullptr}};
PyType_Slot group_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::WorkerGroup>)}, {0, nullptr}};
PyType_Slot loop_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::WorkerLoop>)},
                            {0, nullptr}};
PyType_Slot intake_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::ActionIntake>)}, {0, nullptr}};
PyType_Slot stepper_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<shoal::Stepper>)},
                               {Py_tp_clear, reinterpret_cast<void*>(clear_stepper)},
                               {0, nullptr}};

}  // namespace

NB_MODULE(_native, module) {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  // A vector that still exists when the interpreter ends is not a leak.
  nb::set_leak_warnings(false);
  module.doc() = "Native core of Shoal. Private: use the classes of the shoal package.";

  nb::enum_<shoal::Autoreset>(module, "Autoreset")
      .value("NEXT_STEP", shoal::Autoreset::kNextStep)
      .value("SAME_STEP", shoal::Autoreset::kSameStep)
      .value("DISABLED", shoal::Autoreset::kDisabled);

  shoal::bind_slots(module);

  nb::class_<shoal::Tree>(module, "Tree").def(nb::init<nb::handle>(), "root"_a);

  nb::class_<shoal::Bank>(module, "Bank", nb::type_slots(bank_slots))
      .def(nb::init<const shoal::Tree&, nb::sequence, nb::handle, nb::handle, nb::handle,
                    Py_ssize_t>(),
           "tree"_a, "observations"_a, "rewards"_a, "terminated"_a, "truncated"_a, "rows"_a)
      .def("objects", &shoal::Bank::objects, "slots"_a.none(),
           nb::sig("def objects(self, slots: Slots) -> typing.Any"))
      .def("put_objects", &shoal::Bank::put_objects, "slots"_a.none(), "objects"_a);

  nb::class_<shoal::SlotState>(module, "SlotState")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, Py_ssize_t>(), "finished"_a,
           "episode_return"_a, "episode_length"_a, "episode_start"_a, "slots"_a);

  nb::class_<shoal::ExclusiveUse>(module, "ExclusiveUse")
      .def(nb::init<>())
      .def("__enter__", &shoal::ExclusiveUse::enter)
      .def(
          "__exit__", [](shoal::ExclusiveUse& use, nb::args) { use.exit(); },
          nb::sig("def __exit__(self, *args: object) -> None"));

  nb::class_<shoal::ActionIntake>(module, "ActionIntake", nb::type_slots(intake_slots))
      .def(nb::init<const shoal::Tree&, nb::sequence, shoal::SlotState&, shoal::Autoreset, bool>(),
           "tree"_a, "columns"_a, "state"_a, "mode"_a, "casts"_a = false, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 4>())
      .def("accept", &shoal::ActionIntake::accept, "actions"_a.none(), "slots"_a.none())
      .def("has_extras", &shoal::ActionIntake::has_extras, "slots"_a.none())
      .def("extras", &shoal::ActionIntake::extras, "slots"_a.none(),
           nb::sig("def extras(self, slots: Slots) -> typing.Any"))
      .def("put_extras", &shoal::ActionIntake::put_extras, "slots"_a.none(), "extras"_a);

  nb::class_<shoal::Stepper>(module, "Stepper", nb::type_slots(stepper_slots))
      .def(nb::init<const shoal::Tree&, nb::handle, shoal::SlotState&, nb::list, shoal::Autoreset,
                    bool, bool, bool>(),
           "tree"_a, "actions"_a, "state"_a, "envs"_a, "mode"_a, "statistics"_a, "deep"_a,
           "remembers"_a = true, nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("step", &shoal::Stepper::step, "actions"_a.none(), "bank"_a.none(),
           nb::sig("def step(self, actions: typing.Any, bank: Bank | None) -> Results"))
      .def("run", &shoal::Stepper::run, "work"_a.none(), "bank"_a.none(),
           nb::sig("def run(self, work: collections.abc.Sequence[Work] | None, bank: "
                   "Bank | None) -> Results"))
      .def_prop_rw("memory", &shoal::Stepper::memory, &shoal::Stepper::remember,
                   nb::for_getter(nb::sig("def memory(self, /) -> list[typing.Any]")))
      .def("latest", &shoal::Stepper::latest, "slots"_a.none(), "bank"_a.none(),
           nb::sig("def latest(self, slots: Slots, bank: Bank | None) -> typing.Any"));

  nb::class_<shoal::Board>(module, "Board")
      .def(
          "__init__",
          [](shoal::Board* self, nb::handle memory, int workers, uint32_t capacity, bool may_spin,
             std::vector<std::vector<int>> pipes) {
            const shoal::Column<char> block(memory, NPY_UINT8,
                                            shoal::Board::bytes(workers, capacity));
            auto sleep = [&](size_t k) {
              return pipes.empty() ? shoal::make_futex_sleep()
                                   : shoal::make_pipe_sleep(pipes.at(k), pipes.at(k + 1));
            };
            new (self) shoal::Board(block.data, workers, capacity, sleep(0), sleep(2), may_spin);
          },
          "memory"_a, "workers"_a, "capacity"_a, "may_spin"_a, "pipes"_a, nb::keep_alive<1, 2>())
      .def_static("bytes", &shoal::Board::bytes, "workers"_a, "capacity"_a)
      .def("finished", nb::overload_cast<int>(&shoal::Board::finished, nb::const_), "worker"_a)
      .def("started", &shoal::Board::started, "worker"_a)
      .def("current", &shoal::Board::current, "worker"_a);

  nb::class_<shoal::WorkerLoop>(module, "WorkerLoop", nb::type_slots(loop_slots))
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::list, nb::handle, int, Py_ssize_t,
                    Py_ssize_t>(),
           "board"_a, "stepper"_a, "actions"_a, "banks"_a, "start_times"_a.none(), "worker"_a,
           "first"_a, "last"_a)
      .def("serve", &shoal::WorkerLoop::serve, "duty"_a,
           nb::sig("def serve(self, duty: int) -> tuple[int | None, int, StepEvents | "
                   "None] | typing.Literal[False] | None"))
      .def("add", &shoal::WorkerLoop::add, "slots"_a.none(), "bank"_a, "seeds"_a.none(),
           "options"_a.none(), "extras"_a)
      .def("drive", &shoal::WorkerLoop::drive, "slot"_a, "bank"_a, "seeds"_a.none(),
           nb::sig("def drive(self, slot: int, bank: int, seeds: typing.Any) -> "
                   "StepEvents | None"))
      .def("stand_by", &shoal::WorkerLoop::stand_by)
      .def("dismiss", &shoal::WorkerLoop::dismiss)
      .def("wait_until_idle", &shoal::WorkerLoop::wait_until_idle, "slots"_a.none())
      .def("finish", &shoal::WorkerLoop::finish, "slot"_a.none(), "has_message"_a);

  nb::class_<shoal::WorkerGroup>(module, "WorkerGroup", nb::type_slots(group_slots))
      .def(nb::init<nb::handle, const shoal::Tree&, nb::handle, nb::handle, nb::list, Py_ssize_t,
                    std::vector<Py_ssize_t>, bool>(),
           "board"_a, "tree"_a, "actions"_a, "own"_a.none(), "banks"_a, "slots"_a, "shares"_a,
           "copy"_a, nb::keep_alive<1, 3>())
      .def("start_round", &shoal::WorkerGroup::start_round, "actions"_a.none(), "bank"_a)
      .def("open_round", &shoal::WorkerGroup::open_round, "bank"_a)
      .def_prop_ro("ledger", &shoal::WorkerGroup::ledger, nb::rv_policy::reference_internal)
      .def("drive_own", &shoal::WorkerGroup::drive_own,
           nb::sig("def drive_own(self) -> StepEvents | None"))
      .def_prop_ro("round_missing", &shoal::WorkerGroup::round_missing)
      .def("round_awaits", &shoal::WorkerGroup::round_awaits, "worker"_a)
      .def("await_round", &shoal::WorkerGroup::await_round, "seconds"_a)
      .def_prop_ro("round_messages", &shoal::WorkerGroup::round_messages,
                   nb::for_getter(nb::sig("def round_messages(self, /) -> list[int]")))
      .def("redo", &shoal::WorkerGroup::redo, "worker"_a)
      .def(
          "close_round", &shoal::WorkerGroup::close_round,
          nb::sig("def close_round(self) -> tuple[typing.Any, typing.Any, typing.Any, typing.Any]"))
      .def("send", &shoal::WorkerGroup::send, "actions"_a.none(), "slots"_a)
      .def("post_steps", nb::overload_cast<nb::handle>(&shoal::WorkerGroup::post_steps), "slots"_a)
      .def("queue_own_resets", &shoal::WorkerGroup::queue_own_resets, "slots"_a, "seeds"_a,
           "options"_a.none())
      .def("announce_message", &shoal::WorkerGroup::announce_message, "worker"_a)
      .def("collect_done", &shoal::WorkerGroup::collect_done)
      .def("next_announced", &shoal::WorkerGroup::next_announced,
           nb::sig("def next_announced(self) -> tuple[int, int] | None"))
      .def("finish_announced", &shoal::WorkerGroup::finish_announced)
      .def("next_own", &shoal::WorkerGroup::next_own, nb::sig("def next_own(self) -> int | None"))
      .def("drive_next", &shoal::WorkerGroup::drive_next,
           nb::sig("def drive_next(self) -> StepEvents | None"))
      .def("wait", &shoal::WorkerGroup::wait, "wanted"_a, "seconds"_a)
      .def("gather", &shoal::WorkerGroup::gather, "slots"_a, "bank"_a.none(),
           nb::sig("def gather(self, slots: Slots, bank: Bank | None) -> "
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any]"))
      .def("latest", &shoal::WorkerGroup::latest, "slots"_a, "bank"_a.none(),
           nb::sig("def latest(self, slots: Slots, bank: Bank | None) -> typing.Any"))
      .def("correct_count", &shoal::WorkerGroup::correct_count)
      .def("clear", &shoal::WorkerGroup::clear, "worker"_a);

  nb::class_<shoal::Kernel>(module, "Kernel")
      .def(nb::init<const char*>(), "name"_a)
      .def_static("of_table", &shoal::Kernel::of_table, "parts"_a)
      .def_static("at", &shoal::Kernel::at, "address"_a, "owner"_a)
      .def_static("of_functions", &shoal::Kernel::of_functions, "parts"_a, "owner"_a)
      .def("description", &shoal::Kernel::description,
           nb::sig("def description(self) -> dict[str, typing.Any]"));

  nb::class_<shoal::ScriptedPlayers>(module, "ScriptedPlayers")
      .def(nb::init<size_t, std::vector<uint32_t>>(), "count"_a, "seed"_a)
      .def("seed", &shoal::ScriptedPlayers::seed, "seed"_a)
      .def("save", &shoal::ScriptedPlayers::save)
      .def("restore", &shoal::ScriptedPlayers::restore, "saved"_a)
      .def("act", &shoal::ScriptedPlayers::act, "observations"_a, "is_weak"_a, "actions"_a);

  nb::class_<shoal::ScreenPainter>(module, "ScreenPainter")
      .def(
          "__init__",
          [](shoal::ScreenPainter* self, std::pair<int, int> from, std::pair<int, int> to,
             nb::object tables, bool portable) {
            new (self) shoal::ScreenPainter({from.first, from.second}, {to.first, to.second},
                                            tables, portable);
          },
          "screen"_a, "picture"_a, "tables"_a, "portable"_a = false)
      .def("paint", &shoal::ScreenPainter::paint, "newest"_a, "before"_a.none(), "out"_a);

  nb::class_<shoal::AtariTurns>(module, "AtariTurns")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, int, bool, bool>(),
           "emulator"_a, "screens"_a, "painter"_a.none(), "sticky"_a.none(), "frame_skip"_a,
           "merges"_a, "ends_with_life"_a)
      .def(
          "play", &shoal::AtariTurns::play, "action"_a, "strength"_a, "lives"_a, "frames_left"_a,
          "picture"_a,
          nb::sig(
              "def play(self, action: int, strength: float, lives: int, frames_left: int, picture: "
              "numpy.typing.NDArray[numpy.uint8]) -> tuple[int, int, int, bool, bool, bool, bool]"))
      .def_prop_ro("screens", &shoal::AtariTurns::screens,
                   nb::for_getter(nb::sig(
                       "def screens(self, /) -> tuple[numpy.typing.NDArray[numpy.uint8], "
                       "numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint8]]")));

  nb::class_<shoal::Port>(module, "Port")
      .def_static(
          "of_socket",
          [](int descriptor, std::string name, bool may_spin, double stall_timeout) {
            return std::make_unique<shoal::Port>(shoal::make_socket_pipe(descriptor),
                                                 std::move(name), may_spin, stall_timeout);
          },
          "descriptor"_a, "name"_a, "may_spin"_a, "stall_timeout"_a)
      .def_static("shared_bytes", &shoal::ring_pipe_bytes, "capacity"_a)
      .def("send", &shoal::Port::send, "parts"_a, "reads"_a = true)
      .def("peek", &shoal::Port::peek, "needed"_a, "timeout"_a.none(),
           nb::sig("def peek(self, needed: int, timeout: float | None) -> bytes | None"))
      .def("skip", &shoal::Port::skip, "count"_a)
      .def("receive_into", &shoal::Port::receive_into, "buffers"_a)
      .def("share", &shoal::Port::share, "memory"_a, "capacity"_a, "end"_a)
      .def("close", &shoal::Port::close)
      .def("release_in_child", &shoal::Port::release_in_child)
      .def_prop_rw("stall_timeout", &shoal::Port::stall_timeout, &shoal::Port::set_stall_timeout)
      .def_prop_ro("is_shared", &shoal::Port::is_shared)
      .def_prop_ro("name", &shoal::Port::name)
      .def_prop_ro("bytes_sent", &shoal::Port::bytes_sent)
      .def_prop_ro("bytes_received", &shoal::Port::bytes_received);

  nb::class_<shoal::FastPathClient>(module, "FastPathClient",
                                    nb::type_slots(fast_path_client_slots))
      .def(
          "__init__",
          [](shoal::FastPathClient* self, shoal::ActionIntake& intake, shoal::SlotState& state,
             const shoal::Tree& observations, bool updates_finished, uint8_t step, uint8_t batch,
             uint8_t whole) {
            new (self) shoal::FastPathClient(intake, state, observations, updates_finished,
                                             shoal::FastPathCodes{step, batch, whole});
          },
          "intake"_a, "state"_a, "observations"_a, "updates_finished"_a, "step"_a, "batch"_a,
          "whole"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def("step", &shoal::FastPathClient::step, "port"_a, "actions"_a.none(), "number"_a, "ack"_a,
           "timeout"_a.none(),
           nb::sig("def step(self, port: Port, actions: typing.Any, number: int, ack: int, "
                   "timeout: float | None) -> Results | typing.Literal[False] | None"))
      .def_prop_ro("last_request", &shoal::FastPathClient::last_request)
      .def_prop_ro("last_answered", &shoal::FastPathClient::last_answered)
      .def_prop_ro("last_received", &shoal::FastPathClient::last_received)
      .def_prop_ro("results", &shoal::FastPathClient::results,
                   nb::for_getter(nb::sig("def results(self, /) -> Results | None")))
      .def_prop_ro("is_send_incomplete", &shoal::FastPathClient::is_send_incomplete)
      .def_prop_ro("is_receive_incomplete", &shoal::FastPathClient::is_receive_incomplete)
      .def_prop_ro("micros", &shoal::FastPathClient::micros);

  nb::class_<shoal::FastPathServer>(module, "FastPathServer")
      .def(
          "__init__",
          [](shoal::FastPathServer* self, const shoal::Tree& actions,
             const shoal::Tree& observations, Py_ssize_t rows, uint8_t step, uint8_t batch,
             uint8_t whole) {
            new (self) shoal::FastPathServer(actions, observations, rows,
                                             shoal::FastPathCodes{step, batch, whole});
          },
          "actions"_a, "observations"_a, "rows"_a, "step"_a, "batch"_a, "whole"_a,
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("receive", &shoal::FastPathServer::receive, "port"_a, "received"_a, "timeout"_a.none(),
           nb::sig("def receive(self, port: Port, received: int, timeout: float | None) -> "
                   "tuple[int, typing.Any] | typing.Literal[False] | None"))
      .def("respond", &shoal::FastPathServer::respond, "port"_a, "results"_a, "number"_a,
           "reply_to"_a, "micros"_a);

  module.attr("HEADER_BYTES") = shoal::Header::kBytes;
  module.def(
      "pack_header",
      [](uint8_t kind, uint8_t flags, uint32_t rows, uint32_t meta, uint32_t micros,
         uint64_t number, uint64_t ack, uint64_t reply_to, uint64_t body) {
        const auto bytes =
            shoal::Header{kind, flags, rows, meta, micros, number, ack, reply_to, body}.packed();
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::sig("def pack_header(kind: int, flags: int, rows: int, meta: int, micros: int, number: "
              "int, ack: int, reply_to: int, body: int) -> bytes"));
  module.def(
      "read_header",
      [](nb::bytes data) -> nb::object {
        if (data.size() < shoal::Header::kBytes) return nb::none();
        const std::optional<shoal::Header> header = shoal::Header::read(data.c_str());
        if (!header) return nb::none();
        return nb::make_tuple(header->kind, header->flags, header->rows, header->meta,
                              header->micros, header->number, header->ack, header->reply_to,
                              header->body);
      },
      nb::sig("def read_header(data: bytes) -> tuple[int, int, int, int, int, int, int, int, int] "
              "| None"));

  nb::class_<shoal::KernelRunner>(module, "KernelRunner")
      .def(
          "__init__",
          [](shoal::KernelRunner* self, nb::object kernel, nb::object observations,
             nb::object infos, nb::object intake, nb::object state, shoal::Autoreset mode,
             bool statistics, bool check_nan, int64_t max_episode_steps, bool counter_based,
             std::vector<double> parameters, int workers, std::vector<int> cores, bool may_spin) {
            const auto generator =
                counter_based ? shoal::Generator::kCounter : shoal::Generator::kPcg64;
            new (self)
                shoal::KernelRunner(kernel, observations, infos, intake, state,
                                    {mode, statistics, check_nan, max_episode_steps, generator,
                                     std::move(parameters), workers, std::move(cores), may_spin});
          },
          "kernel"_a, "observations"_a, "infos"_a, "intake"_a, "state"_a, nb::kw_only(), "mode"_a,
          "statistics"_a, "check_nan"_a, "max_episode_steps"_a, "counter_based"_a, "parameters"_a,
          "workers"_a, "cores"_a, "may_spin"_a)
      .def("step", &shoal::KernelRunner::step, "actions"_a.none(), "bank"_a.none(),
           nb::sig("def step(self, actions: typing.Any, bank: Bank | None) -> tuple[typing.Any, "
                   "typing.Any, typing.Any, typing.Any, typing.Any]"))
      .def("send", &shoal::KernelRunner::send, "actions"_a.none(), "slots"_a.none())
      .def("send_reset", &shoal::KernelRunner::send_reset, "slots"_a.none(), "seeds"_a, "options"_a)
      .def("receive", &shoal::KernelRunner::receive, "wanted"_a, "seconds"_a, "bank"_a.none(),
           nb::sig("def receive(self, wanted: Wanted, seconds: float, bank: Bank | None) -> "
                   "tuple[typing.Any, ...] | None"))
      .def_prop_ro("ledger", &shoal::KernelRunner::ledger, nb::rv_policy::reference_internal)
      .def("drop", &shoal::KernelRunner::drop)
      .def("latest", &shoal::KernelRunner::latest, "slots"_a.none(), "bank"_a.none(),
           nb::sig("def latest(self, slots: Slots, bank: Bank | None) -> typing.Any"))
      .def("draw", &shoal::KernelRunner::draw, "slots"_a.none(),
           nb::sig("def draw(self, slots: Slots) -> numpy.typing.NDArray[numpy.uint8]"))
      .def("save", &shoal::KernelRunner::save, "slots"_a.none(),
           nb::sig("def save(self, slots: Slots) -> numpy.typing.NDArray[numpy.uint8]"))
      .def("restore", &shoal::KernelRunner::restore, "slots"_a.none(), "rows"_a)
      .def_prop_ro(
          "states",
          [](nb::handle self) { return nb::cast<shoal::KernelRunner&>(self).states(self); },
          nb::for_getter(nb::sig("def states(self, /) -> numpy.typing.NDArray[numpy.uint8]")))
      .def("random_state", &shoal::KernelRunner::random_state, "slot"_a,
           nb::sig("def random_state(self, slot: int) -> tuple[tuple[int, int], tuple[int, int], "
                   "int, int]"))
      .def("seed", &shoal::KernelRunner::seed, "slot"_a,
           nb::sig("def seed(self, slot: int) -> int | None"))
      .def("set_seed", &shoal::KernelRunner::set_seed, "slot"_a, "seed"_a.none())
      .def("parameters", &shoal::KernelRunner::parameters, "slot"_a)
      .def("set_parameter", &shoal::KernelRunner::set_parameter, "slot"_a, "number"_a, "value"_a)
      .def_prop_ro("thread_ids", &shoal::KernelRunner::thread_ids)
      .def("stop", &shoal::KernelRunner::stop, "seconds"_a);

  nb::class_<shoal::Meter>(module, "Meter")
      .def(nb::init<int64_t, shoal::Autoreset, double>(), "num_envs"_a, "mode"_a, "interval"_a)
      .def("begin", &shoal::Meter::begin)
      .def("end", &shoal::Meter::end, "rewards"_a, "terminated"_a, "truncated"_a)
      .def("end_some", &shoal::Meter::end_some, "slots"_a, "rewards"_a, "terminated"_a,
           "truncated"_a)
      .def("reset", &shoal::Meter::reset, "slots"_a.none())
      .def("take_longest", &shoal::Meter::take_longest)
      .def("take_ended", &shoal::Meter::take_ended,
           nb::sig("def take_ended(self) -> list[tuple[int, float, int]]"))
      .def_prop_ro("steps", &shoal::Meter::steps)
      .def_prop_ro("batches", &shoal::Meter::batches)
      .def_prop_ro("episodes", &shoal::Meter::episodes)
      .def_prop_ro("latest", &shoal::Meter::latest)
      .def_prop_ro("spent", &shoal::Meter::spent)
      .def_prop_ro("times", &shoal::Meter::times)
      .def_prop_ro_static("edges", [](nb::handle) { return shoal::Meter::edges(); });

  module.def(
      "random_functions",
      [] {
        const shoal::RandomFunctions functions = shoal::random_functions();
        nb::dict addresses;
        addresses["random_double"] = functions.random_double;
        addresses["random_uniform"] = functions.uniform;
        addresses["random_below"] = functions.below;
        return addresses;
      },
      nb::sig("def random_functions() -> dict[str, int]"));
  module.def("has_futex", &shoal::has_futex);
  module.def("start_lifeline", &shoal::start_lifeline, "parent"_a, "dies_with_thread"_a);
  module.def("batch_infos", &shoal::batch_infos, "events"_a, "num_rows"_a, "merge"_a,
             nb::sig("def batch_infos(events: list[Event], num_rows: int, merge: "
                     "collections.abc.Callable[[int, list[tuple[int, typing.Any]]], "
                     "numpy.typing.NDArray[typing.Any]]) -> dict[str, typing.Any]"));
  module.def("batch_moments", &shoal::batch_moments, "batch"_a, "mean"_a, "var"_a);
  module.def("normalize_batch", &shoal::normalize_batch, "batch"_a, "mean"_a, "deviation"_a,
             "limit"_a, "out"_a);
  module.def("resize_area", &shoal::resize_area, "image"_a, "out"_a, "portable"_a = false);
  module.def("stack_frames", &shoal::stack_frames, "ring"_a, "oldest"_a, "chunk"_a, "out"_a);
}
