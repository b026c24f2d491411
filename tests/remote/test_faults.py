"""Cut connections at every point: no step is lost or executed twice."""

import contextlib
import itertools
import random
import threading
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.pools import InlinePool, ThreadPool
from shoal.remote._wire import Kind
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector import VectorEnv
from tests.remote.proxy import POINTS, cut_at, cut_at_random, proxied
from tests.remote.serving import served

NUM_ENVS = 4

# A proxy sees messages on the socket, but not those in shared memory.
connected = partial(shoal.connect, shared_memory=False)
FACTORIES = [partial(ProbeEnv, label) for label in range(NUM_ENVS)]


class Host:
    """A server behind a proxy, with environments in this process to count their steps."""

    def __init__(self, proxy, url, made):
        self.proxy, self.url, self._made = proxy, url, made

    def executed(self):
        """Number of steps that each environment has executed."""
        return [env.total_steps for env in self._made]


@contextmanager
def hosted(decide=lambda direction, header: None, pool=InlinePool, **options):
    made = []

    def factory(mode="NextStep"):
        def recorded(make):
            made.append(make())
            return made[-1]

        return pool(
            [partial(recorded, each) for each in FACTORIES], autoreset_mode=AutoresetMode(mode)
        )

    with (
        served(factory, "tcp://127.0.0.1:0", **options) as url,
        proxied(url, decide) as (proxy, through),
    ):
        yield Host(proxy, through, made)


def local(mode="NextStep"):
    return VectorEnv(InlinePool(FACTORIES, autoreset_mode=AutoresetMode(mode)))


def actions_for(envs, seed):
    envs.action_space.seed(seed)
    return envs.action_space


def play_steps(envs, steps, seed):
    """Reset, then step all slots."""
    yield envs.reset(seed=seed, options={"how": "gently"})
    space = actions_for(envs, seed)
    for _ in steps:
        yield envs.step(space.sample())


def play_groups(envs, steps, seed):
    """Step two groups of slots; one of them is always in flight."""
    yield envs.reset(seed=seed)
    single = envs.single_action_space
    single.seed(seed)
    groups = [[0, 2], [3, 1]]

    def some(group):
        each = [single.sample() for _ in group]
        return {key: np.stack([one[key] for one in each]) for key in each[0]}

    envs.send(some(groups[0]), groups[0])
    for k in steps:
        following = groups[(k + 1) % 2]
        envs.send(some(following), following)
        yield envs.recv(slots=groups[k % 2])
    yield envs.recv()


def play_calls(envs, steps, seed):
    """Step, call, set attributes, and reset some slots."""
    yield envs.reset(seed=seed)
    space = actions_for(envs, seed)
    for k in steps:
        yield envs.step(space.sample())
        yield envs.call("render")
        envs.set_attr("label", [10 * k + slot for slot in range(NUM_ENVS)])
        yield envs.get_attr("label")
        yield envs.get_attr("total_steps")
        if k % 3 == 2:
            mask = np.arange(NUM_ENVS) % 2 == k % 2
            yield envs.reset(seed=seed + k, options={"reset_mask": mask})


PLAYS = {"steps": play_steps, "groups in flight": play_groups, "calls": play_calls}


def until(is_enough):
    """Yield numbers of steps until enough steps were executed."""
    return itertools.takewhile(lambda _: not is_enough(), itertools.count())


def assert_plays_as_local(
    host, play, steps, seed, mode="NextStep", during=contextlib.nullcontext, **options
):
    reference = local(mode)
    envs = connected(host.url, on_lost="resume", timeout=20.0, mode=mode, **options)
    # Both make the same number of steps, even if it depends on the connection.
    numbers = itertools.tee(range(steps) if isinstance(steps, int) else steps)
    with during():
        remote, expected_results = play(envs, numbers[0], seed), play(reference, numbers[1], seed)
        for got, expected in zip(remote, expected_results, strict=True):
            assert_identical(got, expected)
    assert host.executed() == [env.total_steps for env in reference.envs]
    stats = envs.stats()
    envs.close()
    reference.close()
    return stats


@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("point", POINTS)
def test_steps_are_executed_once_if_connection_is_cut(point, play):
    numbers = {1, 2, 3, 6, 7}
    with hosted(cut_at(point, numbers)) as host:
        stats = assert_plays_as_local(host, PLAYS[play], 8, seed=3)
        assert host.proxy.cuts == len(numbers)
        assert stats.reconnects >= 3  # two cuts may cause one reconnect


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mode.value for mode in AutoresetMode if mode.value != "Disabled"])
@pytest.mark.parametrize("point", POINTS)
def test_resume_in_every_autoreset_mode(point, mode):
    with hosted(cut_at(point, {2, 9, 17})) as host:
        assert_plays_as_local(host, play_steps, 25, seed=5, mode=mode)
        assert host.proxy.cuts == 3


@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("pool", [InlinePool, pytest.param(ThreadPool, marks=pytest.mark.slow)])
def test_steps_are_executed_once_under_random_cuts(pool, play):
    with hosted(cut_at_random(7, 0.15), pool) as host:
        assert_plays_as_local(host, PLAYS[play], 20, seed=11)
        assert host.proxy.cuts > 3


@contextmanager
def cutting(proxy, seed, longest):
    """Cuts all connections from time to time."""
    over = threading.Event()
    rng = random.Random(seed)

    def cut():
        while not over.wait(rng.uniform(0.0, longest)):
            proxy.cut()

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("shared", [pytest.param(False, marks=pytest.mark.slow), True])
def test_steps_are_executed_once_under_cuts_at_any_time(shared, play):
    with hosted() as host:
        during = partial(cutting, host.proxy, 5, 0.05)
        enough = until(lambda: host.proxy.connections > 8)
        assert_plays_as_local(
            host, PLAYS[play], enough, seed=11, during=during, shared_memory=shared
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("play", PLAYS)
def test_hundreds_of_cuts_at_any_time(shared, play):
    with hosted() as host:
        during = partial(cutting, host.proxy, 6, 0.03)
        enough = until(lambda: host.proxy.connections > 200)
        assert_plays_as_local(
            host, PLAYS[play], enough, seed=12, during=during, shared_memory=shared
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_random_cuts(seed, play):
    with hosted(cut_at_random(seed, 0.25)) as host:
        assert_plays_as_local(host, PLAYS[play], 400, seed=seed)
        assert host.proxy.cuts > 100


def test_lost_client_ready_message():
    """The client finishes the handshake, but the server does not receive CLIENT_READY."""
    with hosted() as host:
        host.proxy.drops = {Kind.CLIENT_READY}
        envs = connected(host.url, on_lost="resume", timeout=10.0)
        host.proxy.drops = set()
        host.proxy.cut()
        envs.reset(seed=0)
        assert envs.stats().reconnects == 1
        envs.close()


@pytest.mark.parametrize("shared", [False, True])
def test_cut_while_nothing_is_in_flight(shared):
    with hosted() as host:
        reference = local()
        envs = shoal.connect(host.url, on_lost="resume", timeout=10.0, shared_memory=shared)
        expected_results = play_steps(reference, range(4), 1)
        for got in play_steps(envs, range(4), 1):
            assert_identical(got, next(expected_results))
            host.proxy.cut()
        envs.close()


def test_reconnect_during_a_step():
    """Reconnect while the server steps, and after it is done."""

    class Slow(ProbeEnv):
        def step(self, action):
            time.sleep(0.2)
            return super().step(action)

    reference = VectorEnv(InlinePool([ProbeEnv] * 2))
    with (
        served(lambda: InlinePool([Slow] * 2), "tcp://127.0.0.1:0") as url,
        proxied(url) as (proxy, through),
    ):
        envs = connected(through, on_lost="resume", timeout=10.0)
        for vector in (envs, reference):
            vector.reset(seed=1)
        for pause in (0.1, 0.8):
            actions = actions_for(reference, 3).sample()
            envs.pool.begin_step(actions)
            time.sleep(pause)
            proxy.cut()
            assert_identical(envs.recv()[1:], reference.step(actions))
        assert envs.get_attr("total_steps") == (2, 2)
        envs.close()


def test_environment_errors_after_reconnect():
    fails = lambda: InlinePool([partial(ProbeEnv, k, at, 10**6) for k, at in ((0, 2), (1, None))])  # noqa: E731
    with served(fails, "tcp://127.0.0.1:0") as url:
        decide = cut_at("in the middle of the response", {4})
        with proxied(url, decide) as (proxy, through):
            envs = connected(through, on_lost="resume", timeout=10.0)
            envs.reset(seed=0)
            space = actions_for(envs, 0)
            envs.step(space.sample())
            envs.step(space.sample())
            with pytest.raises(ArithmeticError, match="environment 0 fails as asked"):
                envs.step(space.sample())
            assert proxy.cuts == 1
            envs.close()


def test_cut_inside_large_observations():
    box = spaces.Box(0, 255, (300, 1000), np.uint8)

    class Wide(ProbeEnv):
        observation_space = box

        def _observe(self, pushed):
            return self.np_random.integers(0, 256, box.shape, np.uint8)

    reference = VectorEnv(InlinePool([Wide] * 3))
    with served(lambda: InlinePool([Wide] * 3), "tcp://127.0.0.1:0") as url:
        decide = cut_at("in the middle of the response", {1, 2, 4, 5})
        with proxied(url, decide) as (proxy, through):
            envs = connected(through, on_lost="resume", timeout=20.0)
            for got, expected in zip(
                play_steps(envs, range(6), 2), play_steps(reference, range(6), 2), strict=True
            ):
                assert_identical(got, expected)
            assert proxy.cuts == 4
            envs.close()
