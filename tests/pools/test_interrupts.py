"""After an interrupt between any two lines of a step, a reset restores a usable vector."""

import signal
from contextlib import suppress
from functools import partial

import pytest
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.errors import VectorFailedError
from shoal.testing import ProbeEnv, assert_identical
from tests.interrupting import Lines

BACKENDS = ["thread", "process", "inline"]
NUM_ENVS = 5
STEPS = 4


class Probe(ProbeEnv):
    """A probe whose infos depend only on the current episode."""

    def reset(self, **options):
        self.total_steps = 0
        return super().reset(**options)


class Vector:
    """A vector and its expected trajectory without interrupts."""

    def __init__(self, backend, **options):
        if backend != "inline":
            options = {"workers": 2, **options}
        factories = [partial(Probe, label) for label in range(NUM_ENVS)]
        self.envs = shoal.make(factories, backend=backend, **options)
        self.envs.action_space.seed(5)
        self.actions = [self.envs.action_space.sample() for _ in range(STEPS)]
        self.expected = self.trajectory()

    def trajectory(self):
        return [self.envs.reset(seed=3), *map(self.envs.step, self.actions)]

    def step(self):
        self.envs.step(self.actions[0])

    def recover(self):
        """Reset, and check that the trajectory is the expected one."""
        for actual, expected in zip(self.trajectory(), self.expected, strict=True):
            assert_identical(actual, expected)


def interrupted_at(vector, numbers, between):
    """Interrupt a step at each of these lines until its last; return the interrupted lines."""
    interrupted = []
    for number in numbers:
        with Lines(number) as lines:
            vector.step()
        if not lines.where:
            break
        interrupted.append(lines.where)
        between(vector.envs)
        try:
            vector.recover()
        except Exception as error:
            raise AssertionError(f"after an interrupt at {lines.where}") from error
    return interrupted


def do_nothing(_):
    pass


def drop(envs):
    envs.pool.drop()
    assert envs.pool.in_flight == 0


def receive_and_step(envs):
    if envs.pool.in_flight:
        with suppress(VectorFailedError):  # if the caller's own slots were interrupted
            envs.recv(timeout=10.0)
    assert envs.pool.in_flight == 0
    words = envs.step(envs.action_space.sample())[0]["word"]
    assert list(words) == [f"t{time}" for time in envs.get_attr("_time")]


def step_again(envs):
    if envs.pool.in_flight:
        with pytest.raises(AlreadyPendingCallError, match=r"was interrupted: reset\(\) the vec"):
            envs.step(envs.action_space.sample())
    else:
        envs.step(envs.action_space.sample())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("between", [do_nothing, drop, receive_and_step, step_again])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reset_recovers_from_a_step_interrupted_at_any_line(backend, between, stride):
    vector = Vector(backend)
    assert len(interrupted_at(vector, range(0, 5000, stride), between)) > 30 / stride
    vector.envs.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reset_recovers_from_a_step_interrupted_at_any_time(backend):
    """Signals may also arrive within a line, where results of a call may be lost."""
    vector = Vector(backend)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupts = 0
    try:
        for turn in range(60):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 2e-5 * (turn + 1))
                    for _ in range(10):
                        vector.step()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
            vector.recover()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 20
    vector.envs.close()


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_reset_does_not_discard_steps_that_the_user_started(backend):
    vector = Vector(backend)
    for begin in (vector.envs.send, vector.envs.pool.begin_step):
        begin(vector.actions[0])
        with pytest.raises(AlreadyPendingCallError, match="slot 0 is in flight"):
            vector.envs.reset(seed=3)
        vector.envs.recv()
    vector.recover()
    vector.envs.close()
