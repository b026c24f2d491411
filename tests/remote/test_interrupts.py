"""Interrupts at any time during a call: no step is executed twice, no results are mixed up."""

import random
import signal
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.pools import InlinePool
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector import VectorEnv
from tests.remote.peers import process
from tests.remote.serving import served

NUM_ENVS = 4
GROUPS = [2, 0], [1, 3]


class Plain(gymnasium.Env):
    """An environment of tensors only, so that steps take the fast path."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(9)

    def __init__(self, label=0):
        self.label = label
        self.total_steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(3), {}

    def step(self, action):
        self.total_steps += 1
        observation = self.np_random.random(3) + action
        return observation, float(action), self.np_random.random() < 0.1, False, {}


class Wide(Plain):
    """Observations so large that messages arrive in several parts."""

    observation_space = spaces.Box(-np.inf, np.inf, (40_000,), np.float64)

    def reset(self, *, seed=None, options=None):
        return np.resize(super().reset(seed=seed)[0], 40_000), {}

    def step(self, action):
        observation, *rest = super().step(action)
        return np.resize(observation, 40_000), *rest


ENVS = {"plain": Plain, "probe": ProbeEnv, "wide": Wide}


def pool(kind):
    return InlinePool([partial(ENVS[kind], label) for label in range(NUM_ENVS)])


class Interrupter:
    """Interrupts calls at random times with a timer."""

    def __init__(self, seed):
        self.count = 0
        self._is_armed = False
        self._random = random.Random(seed)
        self._duration = 1e-4
        signal.signal(signal.SIGALRM, self._on_alarm)

    def _on_alarm(self, *_):
        if self._is_armed:
            self._is_armed = False
            raise KeyboardInterrupt

    def __call__(self, call):
        """Return whether the call was interrupted, and its result, if any."""
        result = None
        start_time = time.perf_counter()
        try:
            self._is_armed = True
            signal.setitimer(signal.ITIMER_REAL, self._random.uniform(1e-6, 1.2 * self._duration))
            result = call()
            self._is_armed = False
        except KeyboardInterrupt:
            self.count += 1
            return True, result
        finally:
            self._is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._duration += 0.2 * (time.perf_counter() - start_time - self._duration)
        return False, result


class Player:
    """Steps a remote vector under interrupts, and an equal local vector without."""

    def __init__(self, url, kind, how, seed, **options):
        self.envs = shoal.connect(url, timeout=30.0, **options)
        self.local = VectorEnv(pool(kind))
        self.local.action_space.seed(seed)
        self.turns = {"step": [self.step], "groups": [self.groups], "calls": [self.step, self.call]}
        self.turns = self.turns[how]
        self.lost = 0  # results that were lost between the vector and its caller
        self.calls = 0
        assert_identical(self.envs.reset(seed=seed), self.local.reset(seed=seed))

    def executed(self):
        return list(self.envs.get_attr("total_steps"))

    def expected(self):
        return [env.total_steps for env in self.local.envs]

    def play(self, interrupted):
        for turn in self.turns:
            turn(interrupted)
        assert self.executed() == self.expected()

    def step(self, interrupted):
        before = self.expected()
        actions = self.local.action_space.sample()
        was_interrupted, results = interrupted(lambda: self.envs.step(actions))
        if was_interrupted and results is None:
            in_flight = self.envs.pool.in_flight
            assert in_flight in (0, NUM_ENVS)
            if in_flight:
                results = self.envs.recv()[1:]
            elif self.executed() == before:
                results = self.envs.step(actions)
        self.compare(results, self.local.step(actions))

    def groups(self, interrupted):
        actions = {slots[0]: self.some(slots) for slots in GROUPS}
        in_flight = 0
        for slots in GROUPS:
            chosen = actions[slots[0]]
            interrupted(lambda chosen=chosen, slots=slots: self.envs.send(chosen, slots))
            if self.envs.pool.in_flight == in_flight:
                self.envs.send(chosen, slots)
            in_flight += len(slots)
            assert self.envs.pool.in_flight == in_flight
            self.local.send(chosen, slots)
        for slots in GROUPS:
            was_interrupted, batch = interrupted(lambda slots=slots: self.envs.recv(slots=slots))
            if was_interrupted and batch is None and self.envs.pool.in_flight == in_flight:
                batch = self.envs.recv(slots=slots)
            in_flight -= len(slots)
            assert self.envs.pool.in_flight == in_flight
            self.compare(batch, self.local.recv(slots=slots))

    def some(self, slots):
        every = self.local.action_space.sample()
        if isinstance(every, dict):
            return {key: value[slots] for key, value in every.items()}
        return every[slots]

    def call(self, interrupted):
        self.calls += 1
        name = f"number{self.calls}"
        interrupted(lambda: self.envs.set_attr(name, self.calls))
        self.envs.set_attr(name, self.calls)
        was_interrupted, result = interrupted(lambda: self.envs.get_attr(name))
        assert was_interrupted or result == (self.calls,) * NUM_ENVS
        assert self.envs.get_attr("label") == (0, 1, 2, 3)

    def compare(self, got, expected):
        if got is None:
            self.lost += 1
        else:
            assert_identical(got, expected)

    def close(self):
        self.envs.close()
        self.local.close()


def play(url, kind, how, times, seed, **options):
    """Play until enough interrupts have happened; print their number and that of vectors."""
    interrupted = Interrupter(seed)
    players = 0
    until = time.monotonic() + 600.0
    while interrupted.count < times:
        player = Player(url, kind, how, seed + players, **options)
        players += 1
        try:
            while interrupted.count < times:
                assert time.monotonic() < until
                player.play(interrupted)
        except ReceiveTimeoutError:
            raise
        except ConnectionError:
            # The connection may be lost; then all later calls must raise.
            assert options["on_lost"] == "raise"
            try:
                player.envs.step(player.local.action_space.sample())
            except ConnectionError:
                pass
            else:
                raise AssertionError("a lost connection works again")
        player.close()
    print("over", interrupted.count, players, player.lost, flush=True)


SCRIPT = """
from tests.remote.test_interrupts import play
print("ready", flush=True)
play({url!r}, {kind!r}, {how!r}, {times}, {seed}, on_lost={on_lost!r}, shared_memory={shared})
"""


def assert_interrupts_change_nothing(kind, how, times, seed, on_lost, shared):
    with served(partial(pool, kind), "tcp://127.0.0.1:0") as url:
        arguments = {"kind": kind, "how": how, "times": times, "seed": seed, "on_lost": on_lost}
        with process(SCRIPT.format(url=url, shared=shared, **arguments)) as player:
            output = player.remaining_output(30.0 + times)
    last = output.splitlines()[-1]
    assert last.startswith("over"), output
    assert int(last.split()[1]) >= times


PLAYS = ["step", "groups", "calls"]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("how", PLAYS)
def test_vector_works_or_raises_after_interrupts(how, on_lost, shared):
    assert_interrupts_change_nothing("plain", how, 15, 1, on_lost, shared)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("how", PLAYS)
@pytest.mark.parametrize("kind", ENVS)
def test_hundreds_of_interrupts(kind, how, on_lost, shared):
    assert_interrupts_change_nothing(kind, how, 400, 2, on_lost, shared)
