"""What goes wrong in a worker is told to the caller, in time and as it was."""

import os
import signal
import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

from shoal.errors import (
    FactoryPicklingError,
    RemoteError,
    StepTimeoutError,
    VectorFailedError,
    WorkerCrashedError,
)
from shoal.pools import ProcessPool
from shoal.vector import AutoresetMode
from tests.faulty import FaultyEnv, OddError, fault
from tests.random_environments import RandomEnv, WordSpace

NOTHING = fault("nothing")


def actions(slot, name, count=4):
    """Nothing for all slots but one."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def started(count=4, workers=2, **options):
    options = {"caller_works": False, "workers": workers, **options}
    pool = ProcessPool([partial(FaultyEnv, label) for label in range(count)], **options)
    pool.reset(seeds=range(count))
    pool.recv()
    return pool


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestCrashes:
    @pytest.mark.parametrize("doorbell", ["futex", "pipe"])
    @pytest.mark.parametrize(
        ("how", "said"),
        [("exit", "exit code 7"), ("kill", "SIGKILL"), ("segfault", "SIGSEGV")],
    )
    def test_are_noticed_in_the_middle_of_a_step(self, how, said, doorbell):
        pool = started(doorbell=doorbell)
        begun = time.monotonic()
        with pytest.raises(WorkerCrashedError, match=said) as info:
            pool.step(actions(1, how))
        assert time.monotonic() - begun < 1.0
        assert "slots 0 to 1" in str(info.value)
        with pytest.raises(WorkerCrashedError, match=said):
            pool.step(actions(1, "nothing"))
        with pytest.raises(WorkerCrashedError, match=said):
            pool.call("label")
        pool.close()
        with pytest.raises(ClosedEnvironmentError):
            pool.step(actions(1, "nothing"))

    def test_are_noticed_within_50_ms(self):
        pool = started()
        pool.send(actions(0, "sleep"))
        victim = pool.call("pid", slots=[2])[0]
        times = []

        def strike():
            time.sleep(0.3)
            times.append(time.monotonic())
            os.kill(victim, signal.SIGKILL)

        threading.Thread(target=strike).start()
        with pytest.raises(WorkerCrashedError):
            pool.recv(min_slots=4)
        assert time.monotonic() - times[0] < 0.05
        pool.close(terminate=True)

    @pytest.mark.parametrize("use", ["step", "send", "call", "reset"])
    def test_are_noticed_after_idling(self, use):
        pool = started()
        os.kill(pool.call("pid")[0], signal.SIGKILL)
        time.sleep(0.1)
        begun = time.monotonic()
        uses = {
            "step": lambda: pool.step([NOTHING] * 4),
            "send": lambda: (pool.send([NOTHING] * 4), pool.recv()),
            "call": lambda: pool.call("label"),
            "reset": lambda: (pool.reset(), pool.recv()),
        }
        with pytest.raises(WorkerCrashedError, match="SIGKILL"):
            uses[use]()
        assert time.monotonic() - begun < 0.2
        pool.close()

    def test_while_a_worker_is_building(self):
        with pytest.raises(WorkerCrashedError, match="exit code 9"):
            ProcessPool([partial(os._exit, 9)] * 2, workers=1, caller_works=False)

    def test_a_stopped_worker_can_be_left(self):
        pool = started()
        pool.send(actions(3, "stop"))
        with pytest.raises(TimeoutError):
            pool.recv(timeout=0.1)
        assert {0, 1} <= set(pool.recv(min_slots=2).slots.tolist())
        pids = set(pool.call("pid", slots=[0, 1]))
        begun = time.monotonic()
        pool.close(timeout=0.3)
        assert time.monotonic() - begun < 2.0
        assert not any(map(is_running, pids))


class TestRestarts:
    @pytest.mark.parametrize("how", ["exit", "kill", "segfault"])
    def test_cost_one_episode_of_the_lost_slots(self, how, caplog):
        pool = started(on_crash="restart")
        pool.step(actions(0, "nothing"))
        observations, rewards, terminated, truncated, infos = pool.step(actions(1, how))
        assert truncated.tolist() == [True, True, False, False]
        assert not terminated.any()
        assert observations[:, 1].tolist() == [0, 0, 2, 2]
        assert rewards.tolist() == [0, 0, 2, 3]
        assert infos[0] == [(0, {"crashed": True}), (1, {"crashed": True})]
        assert "starting a replacement" in caplog.text
        observations, *_, truncated, infos = pool.step([NOTHING] * 4)
        assert observations[:, 1].tolist() == [1, 1, 3, 3]
        assert not truncated.any()
        assert infos is None
        pool.close()

    def test_seeds_after_a_crash_are_the_same_in_every_run(self):
        runs = []
        for _ in range(2):
            pool = started(on_crash="restart")
            runs.append([pool.step(actions(k, "exit"))[0] for k in (0, 3, 0)])
            pool.close()
        assert np.array_equal(runs[0], runs[1])
        starts = {row[0] for batch in runs[0] for row in batch}
        assert len(starts) == 4 + 2 + 2  # what is lost begins anew, and never as it had begun

    def test_of_slots_in_flight_and_of_idle_ones(self):
        pool = started(on_crash="restart")
        pool.send([fault("exit"), NOTHING], slots=[0, 2])
        batch = pool.recv()
        assert batch.slots.tolist() == [0, 2]
        assert batch.truncated.tolist() == [True, False]
        pool.send([NOTHING], slots=[1])  # was idle when its worker was lost
        batch = pool.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        pool.send([NOTHING] * 4)
        assert not pool.recv().truncated.any()
        pool.close()

    def test_an_idle_slot_tells_in_the_next_round(self):
        pool = started(on_crash="restart")
        pool.send([fault("kill")], slots=[0])
        pool.recv()
        *_, truncated, infos = pool.step([NOTHING] * 4)
        assert truncated.tolist() == [False, True, False, False]
        assert infos[0] == [(1, {"crashed": True})]
        pool.close()

    def test_a_reset_makes_up_for_the_loss(self):
        pool = started(on_crash="restart")
        pool.send([fault("kill")], slots=[0])
        pool.recv()
        pool.reset(seeds=range(4))
        assert pool.recv().raw_infos is None
        assert not pool.step([NOTHING] * 4)[3].any()
        pool.close()

    def test_same_step_mode_tells_the_last_observation(self):
        pool = started(on_crash="restart", autoreset_mode=AutoresetMode.SAME_STEP)
        before, *_ = pool.step([NOTHING] * 4)
        *_, infos = pool.step(actions(0, "exit"))
        (slot, final), (_, info) = infos[0][:2]
        assert slot == 0
        assert np.array_equal(final["final_obs"], before[0])
        assert final["final_info"] == info == {"crashed": True}
        pool.close()

    def test_are_limited(self):
        pool = started(on_crash="restart", restarts_per_minute=2)
        pool.step(actions(0, "exit"))
        pool.step(actions(0, "exit"))
        with pytest.raises(WorkerCrashedError) as info:
            pool.step(actions(0, "exit"))
        assert any("2 restarts within a minute" in note for note in info.value.__notes__)
        pool.close()

    def test_a_call_that_was_lost_says_so_and_the_pool_goes_on(self):
        pool = started(on_crash="restart")
        os.kill(pool.call("pid")[0], signal.SIGKILL)
        with pytest.raises(WorkerCrashedError, match="before it could answer"):
            pool.call("label")
        assert pool.call("label") == [0, 1, 2, 3]
        pool.close()


class TestStepTimeouts:
    def test_raise(self):
        pool = started(step_timeout=0.3)
        begun = time.monotonic()
        with pytest.raises(StepTimeoutError, match="slot 2 has taken longer"):
            pool.step(actions(2, "sleep"))
        assert 0.25 < time.monotonic() - begun < 1.5
        pool.close()

    @pytest.mark.parametrize("how", ["sleep", "stop"])
    def test_restart(self, how):
        pool = started(step_timeout=1.0, on_crash="restart", stand_ins=False)
        truncated = pool.step(actions(2, how))[3]
        assert truncated.tolist() == [False, False, True, True]
        pool.send([NOTHING] * 4)
        assert not pool.recv().truncated.any()
        pool.send(actions(0, how))
        assert pool.recv().truncated.tolist() == [True, True, False, False]
        pool.close()

    def test_a_hanging_slot_is_found_while_others_of_its_worker_go_on(self):
        pool = started(step_timeout=0.5, on_crash="restart", workers=1)
        pool.send(actions(1, "sleep"))
        begun = time.monotonic()
        while not (batch := pool.recv(min_slots=1)).truncated.any():
            pool.send([NOTHING] * len(batch.slots), slots=batch.slots)
            assert time.monotonic() - begun < 5.0
        pool.close()

    def test_a_worker_that_was_stopped_from_outside(self):
        pool = started(step_timeout=0.3, on_crash="restart")
        os.kill(pool.call("pid")[0], signal.SIGSTOP)
        assert pool.step([NOTHING] * 4)[3].tolist() == [True, True, False, False]
        pool.close()

    def test_a_slow_caller_is_no_hanging_environment(self):
        pool = started(step_timeout=0.2, on_crash="restart")
        pool.step([NOTHING] * 4)
        time.sleep(0.5)
        pool.send([NOTHING] * 4)
        time.sleep(0.5)
        assert not pool.recv().truncated.any()
        pool.close()

    def test_many_steps_shorter_than_the_limit(self):
        pool = started(step_timeout=0.5, stand_ins=False)
        pool.step([fault("wait")] * 4)
        pool.close()


class TestExceptions:
    def test_keep_their_type_traceback_and_slot(self):
        pool = started()
        with pytest.raises(ArithmeticError, match="2 fails as asked") as info:
            pool.step(actions(2, "raise"))
        assert any("slot 2 of 4" in note for note in info.value.__notes__)
        assert "in step" in str(info.value.__cause__)
        assert "raise ArithmeticError" in str(info.value.__cause__)
        # Every other slot was stepped, and the pool goes on.
        assert pool.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]
        pool.close()

    def test_of_several_slots_are_all_told(self):
        pool = started()
        with pytest.raises(ArithmeticError, match="1 fails") as info:
            pool.step([NOTHING, fault("raise"), NOTHING, fault("odd error")])
        assert any("slot 3" in note for note in info.value.__notes__)
        assert [slot for slot, _ in pool.errors] == [1, 3]
        pool.close()

    def test_a_failed_slot_takes_nobody_with_it(self):
        pool = started()
        pool.send(actions(1, "raise"))
        with pytest.raises(ArithmeticError):
            pool.recv()
        assert pool.recv().slots.tolist() == [0, 2, 3]
        pool.close()

    def test_an_odd_constructor(self):
        pool = started()
        with pytest.raises(OddError, match="code 3: 0 is odd") as info:
            pool.step(actions(0, "odd error"))
        assert info.value.code == 3
        pool.close()

    def test_one_that_cannot_be_pickled(self):
        pool = started()
        with pytest.raises(LookupError, match="1 holds a lock") as info:
            pool.step(actions(1, "unpicklable error"))
        assert isinstance(info.value, RemoteError)
        assert type(info.value).__name__ == "UnpicklableError"
        assert "holds a lock" in str(info.value.__cause__)
        pool.close()

    def test_an_environments_wish_to_exit_is_not_the_callers(self):
        pool = started()
        with pytest.raises(RemoteError) as info:
            pool.step(actions(1, "system exit"))
        assert type(info.value).__name__ == "SystemExit"
        assert not isinstance(info.value, SystemExit)
        pool.close()

    @pytest.mark.parametrize(
        "what", [5, "text", type("Spaceless", (gymnasium.Env,), {})], ids=["int", "text", "bare"]
    )
    def test_what_is_no_environment(self, what):
        factory = what if isinstance(what, type) else lambda: what
        with pytest.raises(AttributeError, match="observation_space") as info:
            ProcessPool([factory] * 2, workers=1, caller_works=False)
        assert any("slot 0 of 2" in note for note in info.value.__notes__)

    def test_an_info_that_cannot_be_pickled(self):
        pool = started()
        with pytest.raises(TypeError, match="cannot pickle") as info:
            pool.step(actions(2, "unpicklable info"))
        assert any("slot 2, in its info" in note for note in info.value.__notes__)
        pool.close()

    @pytest.mark.parametrize("caller_works", [True, False])
    @pytest.mark.parametrize("where", ["init", "reset", "step", "render", "close"])
    @pytest.mark.parametrize("slot", [0, 3])
    def test_anywhere(self, where, slot, caller_works):
        factories = [
            partial(FaultyEnv, label, where if label == slot else None) for label in range(4)
        ]

        def live():
            pool = ProcessPool(factories, workers=2, caller_works=caller_works, start="fork")
            try:
                pool.reset()
                pool.recv()
                pool.step([NOTHING] * 4)
                pool.call("render")
            finally:
                pool.close()

        with pytest.raises(ArithmeticError, match=f"{slot} fails in {where}") as info:
            live()
        assert any(f"slot {slot} of 4" in note for note in info.value.__notes__)

    def test_in_a_call(self):
        pool = started()
        with pytest.raises(AttributeError) as info:
            pool.call("no_such_thing")
        assert any("slot 0 of 4" in note for note in info.value.__notes__)
        assert pool.call("label", slots=[3, 0]) == [3, 0]
        pool.close()


class TestOrdinaryMischief:
    @pytest.mark.parametrize("what", ["print", "fork", "thread"])
    def test_does_no_harm(self, what, capfd):
        pool = started()
        for _ in range(3):
            pool.step(actions(1, what))
        pool.close()
        output = capfd.readouterr()
        assert output.out == ("a word from 1\n" * 3 if what == "print" else "")

    def test_infos_larger_than_any_pipe(self):
        pool = started()
        for _ in range(3):
            *_, infos = pool.step([fault("big info")] * 4)
            assert [info["data"][5] for _, info in infos[0]] == [0, 1, 2, 3]
        pool.send([fault("big info")] * 4)
        pool.call("set_wrapper_attr", "label", np.zeros(500_000))  # large on both ways at once
        pool.recv()
        pool.close()


class TestRefusedMessages:
    """What cannot be sent is refused before anything has happened."""

    def test_options_of_a_reset(self):
        pool = started()
        with pytest.raises(TypeError, match="pickle"):
            pool.reset(options={"lock": threading.Lock()})
        assert pool.in_flight == 0
        assert pool.step([NOTHING] * 4)[0][:, 1].tolist() == [1] * 4
        pool.close()

    def test_actions(self):
        space = gymnasium.spaces.Tuple((WordSpace(), gymnasium.spaces.Discrete(2)))
        env = partial(RandomEnv, gymnasium.spaces.Discrete(3), space)
        pool = ProcessPool([env] * 4, workers=2, caller_works=False)
        pool.reset(seeds=range(4))
        pool.recv()
        bad = (["word-1", "word-2", threading.Lock(), "word-3"], np.zeros(4, np.int64))
        good = (["word-1"] * 4, np.zeros(4, np.int64))
        for use in (pool.send, pool.step):
            with pytest.raises(TypeError, match="pickle"):
                use(bad)
            assert pool.in_flight == 0
            pool.step(good)
        pool.close()

    def test_arguments_of_a_call(self):
        pool = started()
        with pytest.raises(TypeError, match="pickle"):
            pool.call("set_wrapper_attr", "label", threading.Lock())
        assert pool.call("label") == [0, 1, 2, 3]
        pool.close()


def test_an_interrupted_message_breaks_the_vector_and_close_still_ends_it():
    pool = started()
    pids = pool.call("pid")
    os.kill(pids[0], signal.SIGSTOP)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGUSR1]).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.call("set_wrapper_attr", "label", np.zeros(500_000))
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(VectorFailedError, match="was cut off"):
        pool.step([NOTHING] * 4)
    begun = time.monotonic()
    pool.close(timeout=0.3)
    assert time.monotonic() - begun < 3.0
    assert not any(map(is_running, pids))


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


class UnreadableEnv(FaultyEnv):
    def step(self, action):
        return *super().step(action)[:4], {"odd": Unreadable()}


def test_what_cannot_be_read_is_told_and_close_still_ends_it():
    pool = ProcessPool([UnreadableEnv] * 2, workers=1, caller_works=False)
    pool.reset()
    pool.recv()
    pids = pool.call("pid")
    for again in (partial(pool.step, [NOTHING] * 2), pool.recv, pool.reset):
        with pytest.raises(ValueError, match="no number"):
            again()
    pool.close()
    assert not any(map(is_running, pids))


class TestFactories:
    def test_that_cannot_be_pickled_are_named(self):
        lock = threading.Lock()

        def factory():
            return FaultyEnv(lock)

        with pytest.raises(FactoryPicklingError, match=r"slot 1 .*the variable 'lock'"):
            ProcessPool([FaultyEnv, factory], workers=1, caller_works=False)

    def test_that_cannot_be_pickled_are_forked(self):
        lock = threading.Lock()
        factories = [lambda: FaultyEnv(lock.locked())] * 2
        pool = ProcessPool(factories, workers=1, caller_works=False, start="fork")
        assert pool.call("label") == [False, False]
        pool.close()

    def test_that_a_worker_cannot_import(self, monkeypatch):
        import sys
        import types

        module = types.ModuleType("only_here")
        exec("import tests.faulty\nclass Env(tests.faulty.FaultyEnv): pass", vars(module))
        monkeypatch.setitem(sys.modules, "only_here", module)
        with pytest.raises(FactoryPicklingError, match="only_here"):
            ProcessPool([module.Env] * 2, workers=1, caller_works=False)
