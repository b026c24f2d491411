"""Crashes, restarts and timeouts of actors."""

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
    ReceiveTimeoutError,
    StepTimeoutError,
    WorkerCrashedError,
)
from shoal.pools import InlinePool, ProcessPool
from shoal.pools._ray import ActorRecipe, RayPool
from shoal.pools._ray.cluster import Cluster
from shoal.vector import AutoresetMode
from tests.faulty import FaultyEnv, fault
from tests.pools.ray.pools import CPUS, NOTHING, actions, ray_pool, started_pool, wait_until

pytestmark = pytest.mark.usefixtures("ray_here")


@pytest.fixture
def raising_pool():
    """A pool for one test, which a crash may make unusable."""
    pool = started_pool()
    yield pool
    pool.close()


@pytest.fixture(scope="class")
def shared_pool(ray_here):
    """A pool whose lost actors are replaced, for all tests of a class."""
    pool = started_pool(on_crash="restart", ray_options={"restarts_per_minute": 100})
    yield pool
    pool.close()


@pytest.fixture
def restarting(shared_pool):
    """A pool whose lost actors are replaced, reset with the seeds 0, 1, 2, ..."""
    shared_pool.reset(seeds=range(shared_pool.num_envs))
    shared_pool.recv()
    return shared_pool


class TestCrashes:
    def test_error_names_actor_and_node_and_ends_the_pool(self, raising_pool):
        start = time.monotonic()
        with pytest.raises(WorkerCrashedError) as info:
            raising_pool.step(actions(2, "exit"))
        assert time.monotonic() - start < 5.0
        assert "actor 1" in str(info.value)
        assert "slots 2 to 3" in str(info.value)
        assert os.uname().nodename in str(info.value)
        for use in (lambda: raising_pool.step([NOTHING] * 4), lambda: raising_pool.call("label")):
            with pytest.raises(WorkerCrashedError, match="actor 1"):
                use()
        raising_pool.close()
        with pytest.raises(ClosedEnvironmentError):
            raising_pool.step([NOTHING] * 4)

    def test_detected_while_waiting(self, raising_pool):
        victim = raising_pool.call("pid", slots=[2])[0]
        raising_pool.send(actions(2, "sleep"))
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(WorkerCrashedError, match="actor 1"):
            raising_pool.recv()
        raising_pool.close(terminate=True)

    @pytest.mark.parametrize(
        "use",
        ["step", *(pytest.param(use, marks=pytest.mark.slow) for use in ("send", "reset", "call"))],
    )
    def test_detected_after_idling(self, raising_pool, use):
        victim = raising_pool.call("pid")[0]
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.3)
        uses = {
            "step": lambda: raising_pool.step([NOTHING] * 4),
            "send": lambda: (raising_pool.send([NOTHING] * 4), raising_pool.recv()),
            "call": lambda: raising_pool.call("label"),
            "reset": lambda: (raising_pool.reset(), raising_pool.recv()),
        }
        with pytest.raises(WorkerCrashedError, match="actor 0"):
            uses[use]()


class TestRestarts:
    def test_truncate_one_episode_of_the_lost_slots(self, restarting, caplog):
        restarting.step([NOTHING] * 4)
        observations, rewards, terminated, truncated, infos = restarting.step(actions(1, "kill"))
        assert truncated.tolist() == [True, True, False, False]
        assert not terminated.any()
        assert observations[:, 1].tolist() == [0, 0, 2, 2]
        assert rewards.tolist() == [0, 0, 2, 3]
        assert infos[0] == [(0, {"crashed": True}), (1, {"crashed": True})]
        assert "starting a replacement" in caplog.text
        observations, *_, truncated, infos = restarting.step([NOTHING] * 4)
        assert observations[:, 1].tolist() == [1, 1, 3, 3]
        assert not truncated.any()
        assert infos is None

    @pytest.mark.slow
    def test_use_the_same_seeds_as_a_process_pool(self, restarting):
        factories = [partial(FaultyEnv, label) for label in range(4)]
        reference = ProcessPool(factories, workers=2, caller_works=False, on_crash="restart")
        reference.reset(seeds=range(4))
        reference.recv()
        for slot in (0, 3, 0):
            expected = reference.step(actions(slot, "exit"))
            assert np.array_equal(restarting.step(actions(slot, "exit"))[0], expected[0])
        reference.close()

    def test_slots_in_flight_report_at_once_and_idle_slots_when_sent(self, restarting):
        restarting.send([fault("exit"), NOTHING], slots=[0, 2])
        batch = restarting.recv(slots=[0, 2])
        assert batch.truncated.tolist() == [True, False]
        restarting.send([NOTHING], slots=[1])  # was idle when its actor was lost
        batch = restarting.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        restarting.send([NOTHING] * 4)
        assert not restarting.recv().truncated.any()

    def test_idle_slot_reports_its_loss_in_the_next_step(self, restarting):
        restarting.send([fault("kill")], slots=[0])
        restarting.recv()
        *_, truncated, infos = restarting.step([NOTHING] * 4)
        assert truncated.tolist() == [False, True, False, False]
        assert infos[0] == [(1, {"crashed": True})]
        assert not restarting.step([NOTHING] * 4)[3].any()

    def test_reset_clears_an_unreported_loss(self, restarting):
        restarting.send([fault("kill")], slots=[0])
        restarting.recv()
        restarting.reset(seeds=range(4))
        assert restarting.recv().raw_infos is None
        assert not restarting.step([NOTHING] * 4)[3].any()

    def test_other_slots_are_not_delayed(self, restarting):
        restarting.send(actions(0, "kill"))
        batch = restarting.recv(slots=[2, 3])
        assert batch.observations[:, 1].tolist() == [1, 1]
        assert restarting.recv().truncated.tolist() == [True, True]

    def test_same_step_mode_reports_the_final_observation(self):
        pool = started_pool(on_crash="restart", autoreset_mode=AutoresetMode.SAME_STEP)
        before, *_ = pool.step([NOTHING] * 4)
        *_, infos = pool.step(actions(0, "exit"))
        (slot, final), (_, info) = infos[0][:2]
        assert slot == 0
        assert np.array_equal(final["final_obs"], before[0])
        assert final["final_info"] == info == {"crashed": True}
        pool.close()

    @pytest.mark.slow
    def test_restart_limit(self):
        pool = started_pool(on_crash="restart", ray_options={"restarts_per_minute": 1})
        pool.step(actions(0, "exit"))
        with pytest.raises(WorkerCrashedError) as info:
            pool.step(actions(0, "exit"))
        assert any("1 restarts within a minute" in note for note in info.value.__notes__)
        pool.close()

    def test_lost_call_raises_and_the_pool_stays_usable(self, restarting):
        os.kill(restarting.call("pid")[0], signal.SIGKILL)
        with pytest.raises(WorkerCrashedError, match="before it could answer"):
            restarting.call("label")
        assert restarting.call("label") == [0, 1, 2, 3]

    def test_constructor_error_of_a_replacement_is_raised(self, tmp_path):
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


class FailsInReplacement(FaultyEnv):
    """An environment whose first reset fails in every process but the first."""

    def __init__(self, label, flag):
        super().__init__(label)
        self._is_second = flag.exists()
        flag.touch()

    def reset(self, **arguments):
        if self._is_second and self.label == 1:
            self._is_second = False
            raise ArithmeticError("reset fails in a replacement")
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
    def test_reset_error_of_a_replacement_is_raised_once(self, tmp_path, build):
        factories = [
            partial(FailsInReplacement, label, tmp_path / f"{label}") for label in range(3)
        ]
        pool = ray_pool(factories, [2, 1], build=build, ray_options={"on_crash": "restart"})
        pool.reset(seeds=range(3))
        pool.recv()
        victim = pool._clients[0].pool_info.process
        pool.begin_step([NOTHING] * 3)
        pool.end_step()
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(ArithmeticError, match="reset fails in a replacement"):
            pool.step([NOTHING] * 3)
        assert pool.in_flight == 0
        pool.reset(seeds=range(3))
        assert pool.recv(timeout=20.0).raw_infos is None
        assert pool.step([NOTHING] * 3)[0][:, 1].tolist() == [1, 1, 1]
        pool.close()

    @pytest.mark.slow
    def test_idle_slot_reports_its_loss_when_autoreset_is_disabled(self):
        pool = started_pool(on_crash="restart", autoreset_mode=AutoresetMode.DISABLED)
        pool.send([fault("kill")], slots=[0])
        assert pool.recv().truncated.tolist() == [True]
        pool.send([NOTHING], slots=[1])
        batch = pool.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        pool.close()

    def test_start_timeout_does_not_limit_building_environments(self):
        def build():
            time.sleep(1.5)
            return InlinePool([FaultyEnv])

        pool = RayPool([ActorRecipe(1, build)], Cluster(None), cpus=CPUS, start_timeout=1.0)
        pool.reset()
        assert pool.recv().slots.tolist() == [0]
        pool.close()

    @pytest.mark.slow
    def test_start_timeout_limits_the_start_of_a_replacement(self, tmp_path):
        flag = tmp_path / "started"

        def build():
            if flag.exists():
                time.sleep(30.0)
            flag.touch()
            return InlinePool([FaultyEnv])

        options = {"on_crash": "restart", "start_timeout": 4.0, "cpus": CPUS}
        pool = RayPool([ActorRecipe(1, build)], Cluster(None), **options)
        pool.reset()
        pool.recv()
        with pytest.raises(ClusterError, match="could not be started within 4 seconds"):
            pool.step([fault("kill")])
        start = time.monotonic()
        pool.close()
        assert time.monotonic() - start < 2.0


class TestInnerWorkers:
    """Actors whose pools have worker processes."""

    def test_step_timeout_names_the_slot(self):
        pool = started_pool(
            on_crash="restart",
            build=partial(ProcessPool, caller_works=False, workers=2, step_timeout=0.3),
        )
        with pytest.raises(StepTimeoutError, match="slot 0 has taken longer"):
            pool.step(actions(2, "sleep"))
        pool.close(terminate=True)

    def test_done_slots_do_not_wait_for_others(self):
        pool = started_pool(counts=(3,), build=partial(ProcessPool, caller_works=False, workers=3))
        pids = pool.call("pid")
        pool.send(actions(1, "sleep", 3))
        start = time.monotonic()
        for _ in range(5):
            batch = pool.recv(min_slots=2)
            assert sorted(batch.slots.tolist()) == [0, 2]
            pool.send([NOTHING, NOTHING], batch.slots)
        assert time.monotonic() - start < 3.0
        with pytest.raises(ReceiveTimeoutError, match="can still be received"):
            pool.recv(slots=[1], timeout=0.05)
        pool.close(terminate=True)
        wait_until(lambda: not any(map(is_running, pids)), 5.0)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
