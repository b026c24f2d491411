"""Exceptions of actors, and invalid input."""

import os
import threading
from functools import partial

import numpy as np
import pytest

from shoal.errors import ClusterError, FactoryPicklingError, RemoteError
from shoal.pools import InlinePool
from shoal.pools._ray import ActorRecipe, RayPool
from shoal.pools._ray.cluster import Cluster
from tests.faulty import FaultyEnv, OddError, fault
from tests.pools.ray.pools import NOTHING, actions, ray_pool, started_pool

pytestmark = pytest.mark.usefixtures("ray_here")


@pytest.fixture(scope="module")
def shared_pool(ray_here):
    pool = started_pool()
    yield pool
    pool.close()


@pytest.fixture
def healthy_pool(shared_pool):
    """A pool whose actors do not crash, reset with the seeds 0, 1, 2, ..."""
    shared_pool.reset(seeds=range(shared_pool.num_envs))
    shared_pool.recv()
    return shared_pool


def check_process(process):
    if os.getpid() != process:
        raise ImportError("unpickled in another process")


class ProcessBound:
    """An object that can be unpickled only in the process that pickled it."""

    def __reduce__(self):
        return check_process, (os.getpid(),)


class TestExceptions:
    def test_keep_their_type_traceback_and_slot(self, healthy_pool):
        with pytest.raises(ArithmeticError, match="3 fails as asked") as info:
            healthy_pool.step(actions(3, "raise"))
        assert any("slot 3 of 4" in note for note in info.value.__notes__)
        assert any("actor 1" in note for note in info.value.__notes__)
        assert "raise ArithmeticError" in str(info.value.__cause__)
        assert healthy_pool.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]

    def test_errors_of_several_actors_are_reported(self, healthy_pool):
        with pytest.raises(ArithmeticError, match="1 fails") as info:
            healthy_pool.step([NOTHING, fault("raise"), NOTHING, fault("odd error")])
        assert any("3 is odd" in note for note in info.value.__notes__)

    def test_failed_slot_does_not_affect_others(self, healthy_pool):
        healthy_pool.send(actions(1, "raise"))
        with pytest.raises(ArithmeticError):
            healthy_pool.recv()
        assert healthy_pool.recv().slots.tolist() == [0, 2, 3]

    def test_exceptions_that_are_hard_to_pickle_are_raised(self, healthy_pool):
        with pytest.raises(OddError, match="code 3: 0 is odd"):
            healthy_pool.step(actions(0, "odd error"))
        with pytest.raises(LookupError, match="1 holds a lock") as info:
            healthy_pool.step(actions(1, "unpicklable error"))
        assert isinstance(info.value, RemoteError)

    def test_info_that_cannot_be_pickled(self, healthy_pool):
        with pytest.raises(TypeError, match="cannot pickle") as info:
            healthy_pool.step(actions(2, "unpicklable info"))
        assert any("slot 2 of 4" in note for note in info.value.__notes__)
        assert healthy_pool.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]

    def test_result_that_cannot_be_pickled(self, healthy_pool):
        with pytest.raises(TypeError, match="cannot pickle"):
            healthy_pool.call(lambda env: threading.Lock())
        assert healthy_pool.call("label") == [0, 1, 2, 3]

    def test_info_that_cannot_be_unpickled_fails_only_its_slots(self, healthy_pool):
        def patch_step(env):
            env.unwrapped.step = lambda action: (
                *(np.zeros(2), 0.0, False, False),
                {"odd": ProcessBound()},
            )

        healthy_pool.call(patch_step, slots=[1])
        with pytest.raises(ImportError, match="unpickled in another process"):
            healthy_pool.step([NOTHING] * 4)
        healthy_pool.call(lambda env: vars(env.unwrapped).pop("step"), slots=[1])
        assert healthy_pool.step([NOTHING] * 4)[1].tolist() == [0, 1, 2, 3]

    def test_result_that_cannot_be_unpickled(self, healthy_pool):
        with pytest.raises(ImportError, match="unpickled in another process"):
            healthy_pool.call(lambda env: ProcessBound(), slots=[1])
        assert healthy_pool.call("label") == [0, 1, 2, 3]

    def test_large_infos_and_observations(self, healthy_pool):
        *_, infos = healthy_pool.step([fault("big info")] * 4)
        assert [float(info["data"][-1]) for _, info in infos[0]] == [0, 1, 2, 3]


class TestBadInput:
    def test_unpicklable_factory_is_named(self):
        lock = threading.Lock()
        factories = [FaultyEnv, FaultyEnv, lambda: FaultyEnv(lock)]
        with pytest.raises(FactoryPicklingError, match=r"slot 2 .* the variable 'lock'"):
            ray_pool(factories, [1, 2])

    def test_missing_module_is_named(self, tmp_path, monkeypatch):
        (tmp_path / "only_here.py").write_text(
            "from tests.faulty import FaultyEnv\nclass Mine(FaultyEnv):\n    pass\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import only_here

        with pytest.raises(FactoryPicklingError, match="only_here"):
            ray_pool([only_here.Mine], [1])

    def test_options_that_cannot_be_pickled(self, healthy_pool):
        with pytest.raises(TypeError, match="options of a reset cannot be sent to an actor"):
            healthy_pool.reset(options={"lock": threading.Lock()})
        assert healthy_pool.in_flight == 0
        assert healthy_pool.step([NOTHING] * 4)[0][:, 1].tolist() == [1, 1, 1, 1]

    def test_different_spaces_name_the_slot(self):
        import gymnasium

        factories = [partial(gymnasium.make, name) for name in ("CartPole-v1", "Pendulum-v1")]
        with pytest.raises(RuntimeError, match="Slot 1 has"):
            ray_pool(factories, [1, 1])

    def test_cluster_with_too_few_cpus(self):
        recipe = ActorRecipe(1, partial(InlinePool, [FaultyEnv]))
        other_user = Cluster(None)
        with pytest.raises(ClusterError, match=r"1 actors with 99 CPUs each within 0\.3 s"):
            RayPool([recipe], Cluster(None), cpus=99, start_timeout=0.3)
        other_user.leave()

    def test_connecting_to_a_second_cluster_is_rejected(self):
        with pytest.raises(ClusterError, match="already connected to the Ray cluster at"):
            Cluster("192.0.2.1:6379")
