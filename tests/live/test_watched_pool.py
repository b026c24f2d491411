"""A watched pool behaves like the pool inside, and its watcher counts and logs everything."""

import os
import signal
from functools import partial

import numpy as np
import pytest

import shoal
from shoal.live._attach import attach
from shoal.live._watched_pool import WatchedPool
from shoal.live._watcher import Watcher
from shoal.pools import InlinePool
from shoal.sb3 import DummyVecEnv, VecNormalize
from shoal.testing import PythonPoolConformance
from shoal.testing._identical import assert_identical
from shoal.vector.wrappers import NormalizeReward
from tests.faulty import FaultyEnv, fault


class TestWatchedPool(PythonPoolConformance):
    steps = 30

    def make_python_pool(self, factories, **options):
        pool, watcher = InlinePool(factories, **options), Watcher("probes")
        return WatchedPool(pool, watcher, watcher.attach(pool, "", 0.01), lambda: None)


def updated_state(watcher):
    """Return the state, up to date with all batches so far."""
    watcher._metrics.update()
    watcher.notify()
    return watcher.state()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("backend", ["kernel", "inline", "process"])
def test_results_are_unchanged_and_counts_equal_the_statistics(backend, mode):
    options = {"autoreset_mode": mode, "statistics": True}
    if backend == "process":
        options["workers"] = 1
    with (
        shoal.make("CartPole-v1", 4, backend=backend, **options) as envs,
        shoal.make("CartPole-v1", 4, backend=backend, **options) as plain,
    ):
        watcher = Watcher("poles")
        attach(watcher, envs)
        actions = np.random.default_rng(0).integers(0, 2, (150, 4))
        for vector in (envs, plain):
            vector.reset(seed=3)
        returns, lengths = [], []
        for action in actions:
            result, expected = envs.step(action), plain.step(action)
            infos, other = result[4], expected[4]
            if "episode" in infos:
                ended = infos["_episode"]
                returns += infos["episode"]["r"][ended].tolist()
                lengths += infos["episode"]["l"][ended].tolist()
                infos["episode"].pop("t")
                other["episode"].pop("t")
            assert_identical(result, expected)
        state = updated_state(watcher)
        assert state["steps"] == 600
        assert state["batches"] == 150
        assert state["episodes"] == len(returns)
        assert state["returns"]["mean"] == pytest.approx(np.mean(returns[-100:]))
        assert state["returns"]["length"] == pytest.approx(np.mean(lengths[-100:]))
        assert sum(state["step_times"]["counts"]) == 150
        assert state["step_times"]["median"] <= state["step_times"]["p99"]


def test_slots_stepped_separately_count_once_and_resets_do_not():
    with shoal.make("CartPole-v1", 4, autoreset_mode="Disabled") as envs:
        watcher = Watcher("poles")
        attach(watcher, envs)
        envs.reset(seed=0)
        envs.send([0, 1], [0, 3])
        envs.recv()
        envs.pool.reset([1, 2])
        envs.send([1], [3])
        batch = envs.recv(min_slots=3)
        assert sorted(batch.slots) == [1, 2, 3]
        envs.step([0, 0, 0, 0])
        state = updated_state(watcher)
        assert (state["steps"], state["batches"]) == (7, 3)
        envs.state["theta"][2] = 0.125  # only kernels have states
        assert envs.pool.inner.state["theta"][2] == 0.125


def test_every_frontend_and_wrapped_vectors_can_be_watched():
    watcher = Watcher("normalized")
    with NormalizeReward(shoal.make("CartPole-v1", 2)) as envs:
        attach(watcher, envs)
        envs.reset()
        envs.step(envs.action_space.sample())
        assert updated_state(watcher)["steps"] == 2
    watcher = Watcher("stable")
    envs = VecNormalize(DummyVecEnv([partial(FaultyEnv, 0)] * 3))
    attach(watcher, envs)
    envs.reset()
    envs.step(np.zeros(3, np.int64))
    assert updated_state(watcher)["steps"] == 3
    envs.close()
    assert watcher.state()["ended"] == "closed"


def test_a_vector_is_watched_once_and_can_be_detached():
    with shoal.make("CartPole-v1", 2) as envs:
        pool = envs.pool
        detach = attach(Watcher("one"), envs)
        with pytest.raises(ValueError, match="already"):
            attach(Watcher("two"), envs)
        detach()
        assert envs.pool is pool
    with pytest.raises(TypeError, match="of type list"):
        attach(Watcher("none"), [])
    with shoal.make("CartPole-v1", 2) as envs, pytest.raises(ValueError, match="picture_share"):
        attach(Watcher("greedy"), envs, 1.5)


def test_crashes_and_restarts_are_logged_with_their_slots():
    watcher = Watcher("faulty")
    with shoal.make(
        [partial(FaultyEnv, slot) for slot in range(4)],
        backend="process",
        workers=2,
        on_crash="restart",
    ) as envs:
        attach(watcher, envs)
        envs.reset()
        before = {state.name: state.process for state in envs.pool.worker_states()}
        os.kill(before["worker 1"], signal.SIGKILL)
        envs.step(np.full(4, fault("nothing")))
        watcher._next_update = 0
        watcher.on_batch(envs.pool.inner, None)
        log = [(entry["kind"], entry["text"]) for entry in watcher.state()["log"]]
        assert [text for kind, text in log if kind == "crash"] == [
            f"slot {slot} lost its environment and starts with a new one" for slot in (2, 3)
        ]
        (text,) = [text for kind, text in log if kind == "restart"]
        after = {state.name: state for state in envs.pool.worker_states()}
        assert text == f"worker 1 was replaced by process {after['worker 1'].process}"
        assert [worker["restarts"] for worker in watcher.state()["workers"]] == [0, 1]


def test_an_exception_of_a_step_is_logged_and_raised():
    watcher = Watcher("faulty")
    with shoal.make([partial(FaultyEnv, slot) for slot in range(2)], backend="inline") as envs:
        attach(watcher, envs)
        envs.reset()
        with pytest.raises(ArithmeticError):
            envs.step(np.array([fault("nothing"), fault("raise")]))
        errors = [entry for entry in watcher.state()["log"] if entry["kind"] == "error"]
        assert len(errors) == 1
        assert errors[0]["text"].startswith("ArithmeticError")


def test_the_load_of_a_worker_is_that_of_its_process():
    watcher = Watcher("poles")
    with shoal.make("CartPole-v1", 4, backend="process", workers=1) as envs:
        attach(watcher, envs)
        envs.reset()
        actions = envs.action_space.sample()
        watcher.state()
        for _ in range(4000):
            envs.step(actions)
        watcher.notify()
        loads = [worker["load"] for worker in watcher.state()["workers"]]
        assert len(loads) == 2
        assert all(0 < load < 1.5 for load in loads)
