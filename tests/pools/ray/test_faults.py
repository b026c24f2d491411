"""What goes wrong in an actor is told to the caller as it was, and costs no more than it must."""

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

from shoal.errors import (
    ClusterError,
    FactoryPicklingError,
    ReceiveTimeoutError,
    RemoteError,
    StepTimeoutError,
    WorkerCrashedError,
)
from shoal.pools import InlinePool, ProcessPool
from shoal.pools._ray import Part, RayPool
from shoal.pools._ray.cluster import Cluster
from shoal.vector import AutoresetMode
from tests.faulty import FaultyEnv, OddError, fault
from tests.pools.ray.pools import CPUS, ray_pool, wait_until

pytestmark = pytest.mark.usefixtures("ray_here")

NOTHING = fault("nothing")


def actions(slot, name, count=4):
    """Nothing for all slots but one."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def started(counts=(2, 2), on_crash="raise", ray_options=None, **options):
    """A pool whose slots were reset with the seeds 0, 1, 2, ..."""
    factories = [partial(FaultyEnv, label) for label in range(sum(counts))]
    given = {"on_crash": on_crash, **(ray_options or {})}
    pool = ray_pool(factories, counts, ray_options=given, **options)
    pool.reset(seeds=range(pool.num_envs))
    pool.recv()
    return pool


@pytest.fixture
def strict():
    """A pool that may be broken."""
    pool = started()
    yield pool
    pool.close()


@pytest.fixture(scope="class")
def of_class(ray_here):
    """Pools that the tests of a class share, by how they were made."""
    pools = {}

    def get(**options):
        key = repr(options)
        if key not in pools:
            pools[key] = started(**options)
        pool = pools[key]
        pool.reset(seeds=range(pool.num_envs))
        pool.recv()
        return pool

    yield get
    for pool in pools.values():
        pool.close()


@pytest.fixture
def whole(of_class):
    """A pool that nothing ends."""
    return of_class()


@pytest.fixture
def lenient(of_class):
    """A pool whose actors are replaced."""
    return of_class(on_crash="restart", ray_options={"restarts_per_minute": 100})


class TestCrashes:
    def test_are_told_with_the_place_and_end_the_vector(self, strict):
        begun = time.monotonic()
        with pytest.raises(WorkerCrashedError) as info:
            strict.step(actions(2, "exit"))
        assert time.monotonic() - begun < 5.0
        assert "actor 1" in str(info.value)
        assert "slots 2 to 3" in str(info.value)
        assert os.uname().nodename in str(info.value)
        for use in (lambda: strict.step([NOTHING] * 4), lambda: strict.call("label")):
            with pytest.raises(WorkerCrashedError, match="actor 1"):
                use()
        strict.close()
        with pytest.raises(ClosedEnvironmentError):
            strict.step([NOTHING] * 4)

    def test_are_noticed_while_waiting(self, strict):
        victim = strict.call("pid", slots=[2])[0]
        strict.send(actions(2, "sleep"))
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(WorkerCrashedError, match="actor 1"):
            strict.recv()
        strict.close(terminate=True)

    @pytest.mark.parametrize(
        "use",
        ["step", *(pytest.param(use, marks=pytest.mark.slow) for use in ("send", "reset", "call"))],
    )
    def test_are_noticed_after_idling(self, strict, use):
        victim = strict.call("pid")[0]
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.3)
        uses = {
            "step": lambda: strict.step([NOTHING] * 4),
            "send": lambda: (strict.send([NOTHING] * 4), strict.recv()),
            "call": lambda: strict.call("label"),
            "reset": lambda: (strict.reset(), strict.recv()),
        }
        with pytest.raises(WorkerCrashedError, match="actor 0"):
            uses[use]()


class TestRestarts:
    def test_cost_one_episode_of_the_lost_slots(self, lenient, caplog):
        lenient.step([NOTHING] * 4)
        observations, rewards, terminated, truncated, infos = lenient.step(actions(1, "kill"))
        assert truncated.tolist() == [True, True, False, False]
        assert not terminated.any()
        assert observations[:, 1].tolist() == [0, 0, 2, 2]
        assert rewards.tolist() == [0, 0, 2, 3]
        assert infos[0] == [(0, {"crashed": True}), (1, {"crashed": True})]
        assert "starting a replacement" in caplog.text
        observations, *_, truncated, infos = lenient.step([NOTHING] * 4)
        assert observations[:, 1].tolist() == [1, 1, 3, 3]
        assert not truncated.any()
        assert infos is None

    @pytest.mark.slow
    def test_give_the_seeds_that_a_process_pool_gives(self, lenient):
        factories = [partial(FaultyEnv, label) for label in range(4)]
        reference = ProcessPool(factories, workers=2, caller_works=False, on_crash="restart")
        reference.reset(seeds=range(4))
        reference.recv()
        for slot in (0, 3, 0):
            theirs = reference.step(actions(slot, "exit"))
            assert np.array_equal(lenient.step(actions(slot, "exit"))[0], theirs[0])
        reference.close()

    def test_of_slots_in_flight_and_of_idle_ones(self, lenient):
        lenient.send([fault("exit"), NOTHING], slots=[0, 2])
        batch = lenient.recv(slots=[0, 2])
        assert batch.truncated.tolist() == [True, False]
        lenient.send([NOTHING], slots=[1])  # was idle when its actor was lost
        batch = lenient.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        lenient.send([NOTHING] * 4)
        assert not lenient.recv().truncated.any()

    def test_an_idle_slot_tells_in_the_next_round(self, lenient):
        lenient.send([fault("kill")], slots=[0])
        lenient.recv()
        *_, truncated, infos = lenient.step([NOTHING] * 4)
        assert truncated.tolist() == [False, True, False, False]
        assert infos[0] == [(1, {"crashed": True})]
        assert not lenient.step([NOTHING] * 4)[3].any()

    def test_a_reset_makes_up_for_the_loss(self, lenient):
        lenient.send([fault("kill")], slots=[0])
        lenient.recv()
        lenient.reset(seeds=range(4))
        assert lenient.recv().raw_infos is None
        assert not lenient.step([NOTHING] * 4)[3].any()

    def test_the_others_go_on_meanwhile(self, lenient):
        lenient.send(actions(0, "kill"))
        batch = lenient.recv(slots=[2, 3])
        assert batch.observations[:, 1].tolist() == [1, 1]
        assert lenient.recv().truncated.tolist() == [True, True]

    def test_same_step_mode_tells_the_last_observation(self):
        pool = started(on_crash="restart", autoreset_mode=AutoresetMode.SAME_STEP)
        before, *_ = pool.step([NOTHING] * 4)
        *_, infos = pool.step(actions(0, "exit"))
        (slot, final), (_, info) = infos[0][:2]
        assert slot == 0
        assert np.array_equal(final["final_obs"], before[0])
        assert final["final_info"] == info == {"crashed": True}
        pool.close()

    @pytest.mark.slow
    def test_are_limited(self):
        pool = started(on_crash="restart", ray_options={"restarts_per_minute": 1})
        pool.step(actions(0, "exit"))
        with pytest.raises(WorkerCrashedError) as info:
            pool.step(actions(0, "exit"))
        assert any("1 restarts within a minute" in note for note in info.value.__notes__)
        pool.close()

    def test_a_call_that_was_lost_says_so_and_the_pool_goes_on(self, lenient):
        os.kill(lenient.call("pid")[0], signal.SIGKILL)
        with pytest.raises(WorkerCrashedError, match="before it could answer"):
            lenient.call("label")
        assert lenient.call("label") == [0, 1, 2, 3]

    def test_a_constructor_that_fails_then_is_told(self, tmp_path):
        flag = tmp_path / "broken"

        def make():
            return FaultyEnv(fails_in="init" if flag.exists() else None)

        pool = ray_pool([make] * 2, [1, 1], ray_options={"on_crash": "restart"})
        pool.reset()
        pool.recv()
        flag.touch()
        with pytest.raises(ArithmeticError, match="fails in init"):
            pool.step(actions(0, "kill", 2))
        pool.close()


def is_here(process):
    if os.getpid() != process:
        raise ImportError("it is not there")


class Fussy:
    """What can be unpickled in one process only."""

    def __reduce__(self):
        return is_here, (os.getpid(),)


class FailsAnew(FaultyEnv):
    """One whose resets fail, in a process that is not the first."""

    def __init__(self, label, flag):
        super().__init__(label)
        self._is_second = flag.exists()
        flag.touch()

    def reset(self, **arguments):
        if self._is_second and self.label == 1:
            self._is_second = False
            raise ArithmeticError("it cannot begin anew")
        return super().reset(**arguments)


class TestFailingRestarts:
    @pytest.mark.parametrize(
        "build",
        [
            InlinePool,
            pytest.param(
                partial(ProcessPool, workers=2, caller_works=False), marks=pytest.mark.slow
            ),
        ],
    )
    def test_a_reset_that_fails_then_is_told_once(self, tmp_path, build):
        factories = [partial(FailsAnew, label, tmp_path / f"{label}") for label in range(3)]
        pool = ray_pool(factories, [2, 1], build=build, ray_options={"on_crash": "restart"})
        pool.reset(seeds=range(3))
        pool.recv()
        victim = pool._hosts[0].introduction.process
        pool.begin_step([NOTHING] * 3)
        pool.end_step()
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(ArithmeticError, match="it cannot begin anew"):
            pool.step([NOTHING] * 3)
        assert pool.in_flight == 0
        pool.reset(seeds=range(3))
        assert pool.recv(timeout=20.0).raw_infos is None
        assert pool.step([NOTHING] * 3)[0][:, 1].tolist() == [1, 1, 1]
        pool.close()

    @pytest.mark.slow
    def test_where_nothing_resets_slots_an_idle_one_still_tells_of_its_loss(self):
        pool = started(on_crash="restart", autoreset_mode=AutoresetMode.DISABLED)
        pool.send([fault("kill")], slots=[0])
        assert pool.recv().truncated.tolist() == [True]
        pool.send([NOTHING], slots=[1])
        batch = pool.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        pool.close()

    def test_environments_may_take_their_time_to_be_built(self):
        def build():
            time.sleep(1.5)
            return InlinePool([FaultyEnv])

        pool = RayPool([Part(1, build)], Cluster(None), cpus=CPUS, start_timeout=1.0)
        pool.reset()
        assert pool.recv().slots.tolist() == [0]
        pool.close()

    @pytest.mark.slow
    def test_an_actor_that_does_not_start_is_given_up_in_time(self, tmp_path):
        flag = tmp_path / "begun"

        def build():
            if flag.exists():
                time.sleep(30.0)
            flag.touch()
            return InlinePool([FaultyEnv])

        options = {"on_crash": "restart", "start_timeout": 4.0, "cpus": CPUS}
        pool = RayPool([Part(1, build)], Cluster(None), **options)
        pool.reset()
        pool.recv()
        with pytest.raises(ClusterError, match="could not be started within 4 seconds"):
            pool.step([fault("kill")])
        begun = time.monotonic()
        pool.close()
        assert time.monotonic() - begun < 2.0


class TestInnerWorkers:
    """Actors that host worker processes of their own."""

    def test_a_hanging_environment_costs_its_episode(self):
        pool = started(
            on_crash="restart",
            build=partial(ProcessPool, caller_works=False, workers=2, step_timeout=0.3),
        )
        with pytest.raises(StepTimeoutError, match="slot 0 has taken longer"):
            pool.step(actions(2, "sleep"))
        pool.close(terminate=True)

    def test_slots_that_are_done_do_not_wait_for_one_that_is_not(self):
        pool = started(counts=(3,), build=partial(ProcessPool, caller_works=False, workers=3))
        pids = pool.call("pid")
        pool.send(actions(1, "sleep", 3))
        begun = time.monotonic()
        for _ in range(5):
            batch = pool.recv(min_slots=2)
            assert sorted(batch.slots.tolist()) == [0, 2]
            pool.send([NOTHING, NOTHING], batch.slots)
        assert time.monotonic() - begun < 3.0
        with pytest.raises(ReceiveTimeoutError, match="can still be received"):
            pool.recv(slots=[1], timeout=0.05)
        pool.close(terminate=True)
        wait_until(lambda: not any(map(is_running, pids)), 5.0)


class TestExceptions:
    def test_keep_their_type_traceback_and_slot(self, whole):
        with pytest.raises(ArithmeticError, match="3 fails as asked") as info:
            whole.step(actions(3, "raise"))
        assert any("slot 3 of 4" in note for note in info.value.__notes__)
        assert any("actor 1" in note for note in info.value.__notes__)
        assert "raise ArithmeticError" in str(info.value.__cause__)
        assert whole.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]

    def test_of_several_actors_are_all_told(self, whole):
        with pytest.raises(ArithmeticError, match="1 fails") as info:
            whole.step([NOTHING, fault("raise"), NOTHING, fault("odd error")])
        assert any("3 is odd" in note for note in info.value.__notes__)

    def test_a_failed_slot_takes_nobody_with_it(self, whole):
        whole.send(actions(1, "raise"))
        with pytest.raises(ArithmeticError):
            whole.recv()
        assert whole.recv().slots.tolist() == [0, 2, 3]

    def test_odd_ones_arrive(self, whole):
        with pytest.raises(OddError, match="code 3: 0 is odd"):
            whole.step(actions(0, "odd error"))
        with pytest.raises(LookupError, match="1 holds a lock") as info:
            whole.step(actions(1, "unpicklable error"))
        assert isinstance(info.value, RemoteError)

    def test_an_info_that_cannot_be_pickled(self, whole):
        with pytest.raises(TypeError, match="cannot pickle") as info:
            whole.step(actions(2, "unpicklable info"))
        assert any("slot 2 of 4" in note for note in info.value.__notes__)
        assert whole.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]

    def test_a_result_that_cannot_be_pickled(self, whole):
        with pytest.raises(TypeError, match="cannot pickle"):
            whole.call(lambda env: threading.Lock())
        assert whole.call("label") == [0, 1, 2, 3]

    def test_an_info_that_cannot_be_read_here_costs_its_slots_only(self, whole):
        def tell(env):
            env.unwrapped.step = lambda action: (np.zeros(2), 0.0, False, False, {"odd": Fussy()})

        whole.call(tell, slots=[1])
        with pytest.raises(ImportError, match="it is not there"):
            whole.step([NOTHING] * 4)
        whole.call(lambda env: vars(env.unwrapped).pop("step"), slots=[1])
        assert whole.step([NOTHING] * 4)[1].tolist() == [0, 1, 2, 3]

    def test_a_result_that_cannot_be_read_here(self, whole):
        with pytest.raises(ImportError, match="it is not there"):
            whole.call(lambda env: Fussy(), slots=[1])
        assert whole.call("label") == [0, 1, 2, 3]

    def test_large_infos_and_observations_arrive(self, whole):
        *_, infos = whole.step([fault("big info")] * 4)
        assert [float(info["data"][-1]) for _, info in infos[0]] == [0, 1, 2, 3]


class TestBadInput:
    def test_what_cannot_be_sent_is_named(self):
        lock = threading.Lock()
        factories = [FaultyEnv, FaultyEnv, lambda: FaultyEnv(lock)]
        with pytest.raises(FactoryPicklingError, match=r"slot 2 .* the variable 'lock'"):
            ray_pool(factories, [1, 2])

    def test_what_is_not_there_is_named(self, tmp_path, monkeypatch):
        (tmp_path / "only_here.py").write_text(
            "from tests.faulty import FaultyEnv\nclass Mine(FaultyEnv):\n    pass\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import only_here

        with pytest.raises(FactoryPicklingError, match="only_here"):
            ray_pool([only_here.Mine], [1])

    def test_options_that_cannot_be_sent(self, whole):
        with pytest.raises(TypeError, match="options of a reset cannot be sent to an actor"):
            whole.reset(options={"lock": threading.Lock()})
        assert whole.in_flight == 0
        assert whole.step([NOTHING] * 4)[0][:, 1].tolist() == [1, 1, 1, 1]

    def test_spaces_that_differ_name_the_slot(self):
        import gymnasium

        factories = [partial(gymnasium.make, name) for name in ("CartPole-v1", "Pendulum-v1")]
        with pytest.raises(RuntimeError, match="Slot 1 has"):
            ray_pool(factories, [1, 1])

    def test_a_cluster_that_is_too_small(self):
        part = Part(1, partial(InlinePool, [FaultyEnv]))
        before = Cluster(None)
        with pytest.raises(ClusterError, match=r"1 actors with 99 CPUs each within 0\.3 s"):
            RayPool([part], Cluster(None), cpus=99, start_timeout=0.3)
        before.leave()

    def test_another_cluster_than_the_one_that_is_joined(self):
        with pytest.raises(ClusterError, match=r"connected to the Ray at .* already"):
            Cluster("192.0.2.1:6379")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
