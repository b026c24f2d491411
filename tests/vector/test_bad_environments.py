"""Faulty environments: errors name the slot, and the vector can be closed."""

import copy
import traceback
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import ObservationError, StepResultError

GOOD = np.zeros(3, np.float32)

# Inline, since measuring an environment would make one more than the tests count.
make = partial(shoal.make, backend="inline")


class Misbehaving(gymnasium.Env):
    """Returns given results from `step` and `reset`, and counts calls of `close`."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)
    closed = 0

    def __init__(self, step=None, reset=None, error=None):
        self._step = step if step is not None else (GOOD, 0.0, False, False, {})
        self._reset = reset if reset is not None else (GOOD, {})
        self._error = error

    def reset(self, *, seed=None, options=None):
        return self._reset

    def step(self, action):
        if self._error is not None:
            raise self._error
        return self._step

    def close(self):
        type(self).closed += 1


def caught(error, **misbehaviour):
    """Return the message of the exception that the second of three environments causes."""
    Misbehaving.closed = 0
    envs = make([Misbehaving, partial(Misbehaving, **misbehaviour), Misbehaving])
    with pytest.raises(error) as info:
        (envs.reset(), envs.step([0, 0, 0]))
    assert any("slot 1 of 3" in note for note in info.value.__notes__)
    envs.close()
    envs.close()
    assert Misbehaving.closed == 3
    return str(info.value)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros(4, np.float32), "shape (4,), expected dtype float32 and shape (3,)"),
        (np.zeros((1, 3), np.float32), "shape (1, 3)"),
        (np.zeros(3, complex), "dtype complex128"),
        (None, "dtype object"),
        ("text", "expected dtype float32"),
        ({"a": 1}, "dict"),
        (7.0, "shape ()"),
        ([[1], [1, 2]], "not an array"),
    ],
)
def test_invalid_observations(observation, message):
    assert message in caught(ObservationError, step=(observation, 0.0, False, False, {}))
    assert message in caught(ObservationError, reset=(observation, {}))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((GOOD, 0.0, False, {}), "tuple of 4, expected (observation, reward, terminated"),
        ((GOOD, 0.0, False, False, {}, 1), "tuple of 6"),
        (5, "got int"),
        ((GOOD, None, False, False, {}), "reward of type NoneType"),
        ((GOOD, "1", False, False, {}), "reward of type str"),
        ((GOOD, np.zeros(2), False, False, {}), "reward of type numpy.ndarray"),
        ((GOOD, 0.0, False, False, None), "info of type NoneType"),
    ],
)
def test_invalid_results_of_step(result, message):
    assert message in caught(StepResultError, step=result)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (GOOD, "got numpy.ndarray, expected (observation, info)"),
        ((GOOD,), "tuple of 1"),
        ((GOOD, [1]), "info of type list"),
    ],
)
def test_invalid_results_of_reset(result, message):
    assert message in caught(StepResultError, reset=result)


class ShortTuple(tuple):
    """Reports five elements, but has one."""

    def __len__(self):
        return 5

    def __iter__(self):
        return iter((GOOD,))


def test_result_with_inconsistent_length():
    assert "tuple of 1" in caught(StepResultError, step=ShortTuple((GOOD,)))


class Interrupting:
    def __array__(self, dtype=None, copy=None):
        raise KeyboardInterrupt


def test_interrupt_while_reading_an_observation_propagates():
    caught(KeyboardInterrupt, step=(Interrupting(), 0.0, False, False, {}))


def test_errors_in_nested_observations_name_the_path():
    space = spaces.Dict({"a": spaces.Tuple((spaces.Dict({"b": spaces.Discrete(2)}),))})

    class Nested(Misbehaving):
        observation_space = space

    for observation, message in (
        ({"a": ({},)}, r"observation\['a'\]\[0\]: got dict without the key 'b'"),
        ({"a": ()}, r"observation\['a'\]: got tuple without the element 0"),
        ({"a": ({"b": "x"},)}, r"observation\['a'\]\[0\]\['b'\]: got str"),
    ):
        envs = make(partial(Nested, reset=(observation, {})))
        with pytest.raises(ObservationError, match=message):
            envs.reset()
        envs.close()


def test_ambiguous_termination_flag():
    assert "ambiguous" in caught(ValueError, step=(GOOD, 0.0, np.zeros(2), False, {}))


@pytest.mark.parametrize(
    "result",
    [
        (np.zeros(3), 0.0, False, False, {}),
        (np.zeros(3, np.int64), 1, np.False_, np.True_, {}),
        ([0, 0, 0], np.float32(1), 0, 1, {}),
        [np.zeros((3, 3), np.float32)[:, 0], np.array([1.0]), False, False, {}],
        (np.zeros(3, ">f4"), np.array(1.0), False, False, {}),
    ],
)
def test_results_are_cast_like_in_gymnasium(result):
    with make(partial(Misbehaving, step=result), num_envs=2) as envs:
        envs.reset()
        observations, rewards, *_ = envs.step([0, 0])
        assert observations.dtype == np.float32
        assert rewards.dtype == np.float64


@pytest.mark.parametrize("error", [KeyError("lost"), KeyboardInterrupt(), SystemExit(3)])
def test_exceptions_keep_their_type_and_traceback(error):
    envs = make([Misbehaving, partial(Misbehaving, error=error)])
    envs.reset()
    with pytest.raises(type(error)) as info:
        envs.step([0, 0])
    assert info.value is error
    assert "raise self._error" in "".join(traceback.format_exception(info.value))
    assert any("slot 1 of 2" in note for note in info.value.__notes__)
    envs.close()


def test_steps_continue_after_a_failed_step():
    class Once(Misbehaving):
        def step(self, action):
            error, self._error = self._error, None
            if error is not None:
                raise error
            return self._step

    envs = make([Misbehaving, partial(Once, error=ValueError("once"))])
    envs.reset()
    with pytest.raises(ValueError, match="once"):
        envs.step([0, 0])
    assert envs.step([0, 0])[0].shape == (2, 3)
    envs.close()


class NeedsReset(Misbehaving):
    """Requires `reset` before `step`, as most environments do."""

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.time += 1
        if self.time > 1:
            raise OSError("too late")
        return super().step(action)


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_step_before_the_first_reset_fails_with_a_hint(backend):
    with make(NeedsReset, num_envs=2, backend=backend) as envs:
        with pytest.raises(AttributeError, match="time") as info:
            envs.step([0, 0])
        assert any("never been reset: call reset()" in note for note in info.value.__notes__)
    with make(NeedsReset, num_envs=2, backend=backend) as envs:
        envs.reset()
        envs.step([0, 0])
        with pytest.raises(OSError, match="too late") as info:
            envs.step([0, 0])
        assert not any("never been reset" in note for note in info.value.__notes__)


def test_copy_keeps_which_slots_have_been_reset():
    with make(NeedsReset, num_envs=2) as envs:
        envs.reset()
        with copy.deepcopy(envs) as other:
            other.step([0, 0])
            with pytest.raises(OSError, match="too late") as info:
                other.step([0, 0])
    assert not any("never been reset" in note for note in info.value.__notes__)


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_equal_errors_of_slots_are_summarized(backend):
    class Failing(Misbehaving):
        def step(self, action):
            raise self._error("too late")

    errors = [OSError, OSError, OSError, OSError, ValueError, OSError, ValueError]
    factories = [partial(Failing, error=error) for error in errors]
    envs = shoal.make(factories, backend=backend, workers=2)
    envs.reset()
    with pytest.raises(OSError, match="too late") as info:
        envs.step([0] * 7)
    assert info.value.__notes__ == [
        "shoal: in slot 0 of 7, in its step",
        "shoal: 4 other slots have failed in the same way: 1 to 3, 5",
        "shoal: slots 4, 6 have failed as well: ValueError('too late')",
    ]
    envs.close()


def test_failing_constructor_closes_previous_environments():
    Misbehaving.closed = 0

    def broken():
        raise OSError("no such device")

    with pytest.raises(OSError, match="no such device") as info:
        make([Misbehaving, Misbehaving, broken, Misbehaving])
    assert any("slot 2 of 4" in note for note in info.value.__notes__)
    assert Misbehaving.closed == 2


def test_space_mismatch_shows_both_spaces_and_closes_everything():
    class Other(Misbehaving):
        observation_space = spaces.Box(-2, 2, (3,), np.float32)

    Misbehaving.closed = Other.closed = 0
    with pytest.raises(RuntimeError, match=r"Slot 1 has Box\(-2.0.*slot 0 has Box\(-1.0"):
        make([Misbehaving, Other])
    assert (Misbehaving.closed, Other.closed) == (1, 1)


def test_close_closes_all_environments_even_if_one_fails():
    class Unclosable(Misbehaving):
        def close(self):
            super().close()
            raise RuntimeError("stuck")

    Misbehaving.closed = Unclosable.closed = 0
    envs = make([Misbehaving, Unclosable, Misbehaving, Unclosable])
    with pytest.raises(RuntimeError, match="stuck") as info:
        envs.close()
    assert any("slot 1 of 4" in note for note in info.value.__notes__)
    assert (Misbehaving.closed, Unclosable.closed) == (2, 2)
    envs.close()


def test_interrupt_while_closing_closes_the_rest():
    class Interrupted(Misbehaving):
        def close(self):
            super().close()
            raise KeyboardInterrupt

    Misbehaving.closed = Interrupted.closed = 0
    envs = make([Interrupted, Misbehaving, Misbehaving])
    with pytest.raises(KeyboardInterrupt):
        envs.close()
    assert (Misbehaving.closed, Interrupted.closed) == (2, 1)


def test_final_obs_is_copied_from_a_reused_buffer():
    class Reusing(gymnasium.Env):
        observation_space = spaces.Dict({"a": spaces.Box(-9, 9, (2,), np.float32)})
        action_space = spaces.Discrete(2)

        def __init__(self):
            self._buffer = {"a": np.zeros(2, np.float32)}

        def reset(self, *, seed=None, options=None):
            self._buffer["a"][:] = -1
            return self._buffer, {}

        def step(self, action):
            self._buffer["a"][:] = 5
            return self._buffer, 0.0, True, False, {}

    with make(Reusing, num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP) as envs:
        envs.reset()
        observations, *_, infos = envs.step([0, 0])
    assert (observations["a"] == -1).all()
    assert (infos["final_obs"][1]["a"] == 5).all()
