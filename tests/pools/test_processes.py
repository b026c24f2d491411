"""Pools with workers pass the conformance tests with any division of slots and any doorbell."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.pools import InlinePool, ProcessPool, ThreadPool
from shoal.testing import ProbeEnv, PythonPoolConformance, assert_identical
from shoal.vector import AutoresetMode, VectorEnv
from tests.random_environments import RandomEnv
from tests.strategies import SPACES


class TestSharedWithTheCaller(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return ProcessPool(factories, workers=2, **options)


class TestIsolated(PythonPoolConformance):
    start = "fork"  # ten times as fast as "fresh", which the class above uses

    def make_python_pool(self, factories, **options):
        return ProcessPool(factories, workers=3, caller_works=False, start=self.start, **options)


@pytest.mark.slow
class TestIsolatedAndFresh(TestIsolated):
    start = "fresh"


@pytest.mark.slow
class TestOneWorkerByPipe(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return ProcessPool(factories, workers=1, doorbell="pipe", **options)


class TestForkedByPipe(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return ProcessPool(
            factories, workers=2, caller_works=False, start="fork", doorbell="pipe", **options
        )


class TestThreads(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return ThreadPool(factories, workers=2, **options)


@pytest.mark.slow
class TestThreadsByPipe(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return ThreadPool(
            factories, workers=3, caller_works=False, stand_ins=False, doorbell="pipe", **options
        )


def trajectory(pool, steps, by_slots=False):
    """Return the results of seeded resets and random actions."""
    envs = VectorEnv(pool)
    envs.action_space.seed(5)
    results = [envs.reset(seed=3, options={"level": 2})]
    for step in range(steps):
        actions = envs.action_space.sample()
        if by_slots and step % 2:
            envs.send(actions)
            results.append(tuple(envs.recv()))
        else:
            results.append(envs.step(actions))
    if envs.autoreset_mode is AutoresetMode.DISABLED:
        mask = np.arange(envs.num_envs) % 2 == 0
        results.append(envs.reset(seed=9, options={"reset_mask": mask}))
    envs.close()
    return results


@st.composite
def divisions(draw):
    """Draw a division of slots among workers and the caller."""
    return {
        "workers": draw(st.integers(1, 4)),
        "caller_works": draw(st.booleans()),
        "doorbell": draw(st.sampled_from(["futex", "pipe"])),
        "copy": draw(st.booleans()),
    }


def check_identical_to_inline(make, space, actions, mode, num_envs):
    factories = [partial(RandomEnv, space, actions) for _ in range(num_envs)]
    expected = trajectory(InlinePool(factories, autoreset_mode=mode), 12, by_slots=True)
    pool = make(factories, autoreset_mode=mode)
    for got, wanted in zip(trajectory(pool, 12, by_slots=True), expected, strict=True):
        assert_identical(got, wanted)


MODES = st.sampled_from([AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])


@settings(max_examples=40, deadline=None)
@given(SPACES, SPACES, MODES, st.integers(1, 6), divisions())
def test_threads_return_the_same_as_inline(space, actions, mode, num_envs, division):
    # Views of earlier batches would show the last batch.
    check_identical_to_inline(
        partial(ThreadPool, **{**division, "copy": True}), space, actions, mode, num_envs
    )


@settings(max_examples=15, deadline=None)
@given(SPACES, SPACES, MODES, st.integers(1, 6), divisions())
def test_processes_return_the_same_as_inline(space, actions, mode, num_envs, division):
    make = partial(ProcessPool, start="fork", **{**division, "copy": True})
    check_identical_to_inline(make, space, actions, mode, num_envs)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("copy", [True, False])
def test_statistics_and_views_are_the_same(mode, copy):
    if mode is AutoresetMode.DISABLED:
        pytest.skip("random episodes end, and this test does not reset them")

    def results_of(pool):
        envs = VectorEnv(pool)
        envs.action_space.seed(1)
        envs.reset(seed=4)
        for _ in range(40):
            *batch, infos = envs.step(envs.action_space.sample())
            if "episode" in infos:
                infos["episode"].pop("t")  # the only value that seeds do not determine
            yield [np.copy(part) if isinstance(part, np.ndarray) else str(part) for part in batch]
            yield infos
        envs.close()

    factories = [partial(ProbeEnv, slot) for slot in range(5)]
    options = {"autoreset_mode": mode, "copy": copy, "statistics": True}
    for got, expected in zip(
        results_of(ProcessPool(factories, workers=2, **options)),
        results_of(InlinePool(factories, **options)),
        strict=True,
    ):
        assert_identical(got, expected)


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn", "fresh"])
def test_start_methods(start):
    pool = ProcessPool([partial(ProbeEnv, slot) for slot in range(3)], workers=2, start=start)
    assert pool.call("label") == [0, 1, 2]
    pool.close()


def test_actions_of_another_dtype_arrive_unchanged():
    endless = [partial(ProbeEnv, slot, mean_length=10**9) for slot in range(4)]
    pool = ProcessPool(endless, workers=2)
    pool.reset(seeds=range(4))
    pool.recv()
    plain = {"move": np.array([0, 1, -1, 2]), "push": np.zeros((4, 2))}
    other_dtypes = {"move": plain["move"].astype(np.int8), "push": np.zeros((4, 2), np.float32)}
    for actions in (plain, other_dtypes, plain, other_dtypes):
        pool.step(actions)
        pool.send(actions)
        pool.recv()
    assert pool.call("total_steps") == [8] * 4
    pool.close()


def test_a_pool_cannot_be_copied():
    import pickle

    pool = ThreadPool([ProbeEnv] * 2, workers=1)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(pool)
    pool.close()
