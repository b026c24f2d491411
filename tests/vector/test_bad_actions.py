"""Invalid actions are refused before any environment is stepped."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import ActionTypeError, InvalidActionError
from shoal.testing import assert_identical
from tests.random_environments import RandomEnv

OBSERVATION = spaces.Discrete(3)


def vector(action_space, num_envs=3):
    factory = partial(RandomEnv, OBSERVATION, action_space, mean_length=10**9, with_infos=False)
    envs = shoal.make(factory, num_envs=num_envs)
    envs.reset(seed=0)
    return envs


def assert_refused(action_space, actions, error, match):
    envs = vector(action_space)
    with pytest.raises(error, match=match):
        envs.step(actions)
    assert envs.get_attr("received") == ([], [], [])
    envs.step(envs.action_space.sample())
    assert [len(received) for received in envs.get_attr("received")] == [1, 1, 1]
    envs.close()


@pytest.mark.parametrize(
    ("actions", "error", "match"),
    [
        ([0, 1], InvalidActionError, r"shape \(2,\), expected \(3,\)"),
        ([0, 1, 1, 0], InvalidActionError, r"shape \(4,\), expected \(3,\)"),
        ([[0], [1], [1]], InvalidActionError, r"shape \(3, 1\), expected \(3,\)"),
        (1, InvalidActionError, r"shape \(\), expected \(3,\)"),
        ([0, 1, 2], InvalidActionError, r"slot 2: action is 2, expected .* 0 to 1"),
        ([0, -1, 0], InvalidActionError, r"slot 1: action is -1"),
        (np.array([0, 2**63, 0], np.uint64), InvalidActionError, "slot 1"),
        ([0.0, 1.0, 1.0], ActionTypeError, "dtype float64, expected int64"),
        ([0.0, np.nan, 1.0], ActionTypeError, "dtype float64, expected int64"),
        (["a", "b", "c"], ActionTypeError, "expected int64"),
        ([None, 0, 1], ActionTypeError, "dtype object"),
        (None, InvalidActionError, r"got None, expected shape \(3,\)"),
        ([[0, 1], [1]], InvalidActionError, "inhomogeneous"),
    ],
)
def test_discrete(actions, error, match):
    assert_refused(spaces.Discrete(2), actions, error, match)


@pytest.mark.parametrize(
    "actions",
    [
        [0, 1, 1],
        (1, 0, 1),
        np.array([0, 1, 1], np.int8),
        np.array([0, 1, 1], np.uint64),
        np.array([False, True, True]),
        np.array([0, 9, 1, 9, 1])[::2],
        np.array([0, 1, 1], ">i4"),
        [np.int64(0), np.int32(1), np.uint8(1)],
    ],
)
def test_all_integer_dtypes_are_accepted(actions):
    envs = vector(spaces.Discrete(2))
    envs.step(actions)
    received = [got[0] for got in envs.get_attr("received")]
    assert received == list(actions)
    # A list has no dtype and is cast to that of the space.
    kind = actions.dtype.type if isinstance(actions, np.ndarray) else np.int64
    assert all(type(action) is kind for action in received)
    envs.close()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8])
def test_arrays_of_another_dtype_are_passed_uncast(dtype):
    space = spaces.Dict(
        {"push": spaces.Box(-1, 1, (2,), np.float32), "pull": spaces.Box(-1, 1, ())}
    )
    factory = partial(RandomEnv, OBSERVATION, space, mean_length=10**9)
    ours = shoal.make(factory, num_envs=2)
    theirs = gymnasium.vector.SyncVectorEnv([factory] * 2)
    rng = np.random.default_rng(0)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for kind in (dtype, np.float32, dtype):
        push = rng.uniform(-1, 1, (2, 2)).astype(kind)
        actions = {"push": push, "pull": push[:, 0]}
        ours.step(actions)
        theirs.step(actions)
        push[:] = 0
    assert_identical(ours.get_attr("received"), theirs.get_attr("received"))


def test_discrete_with_start_and_many_values():
    space = spaces.Discrete(5000, start=-7)
    assert_refused(
        space, [0, -8, 0], InvalidActionError, "slot 1: action is -8, expected .* -7 to 4992"
    )
    envs = vector(space)
    envs.step([-7, 4992, 0])
    assert [got[0] for got in envs.get_attr("received")] == [-7, 4992, 0]


def test_multi_discrete_error_names_the_element():
    space = spaces.MultiDiscrete([2, 5])
    actions = np.array([[0, 0], [1, 5], [0, 0]])
    assert_refused(
        space, actions, InvalidActionError, "slot 1: element 1 of action is 5, .* 0 to 4"
    )


def test_multi_binary():
    actions = np.array([[0, 1], [0, 1], [2, 0]])
    assert_refused(spaces.MultiBinary(2), actions, InvalidActionError, "slot 2: element 0")


def test_box_checks_shape_and_dtype_but_not_values():
    space = spaces.Box(-1, 1, (2,), np.float32)
    assert_refused(space, np.zeros((3, 3)), InvalidActionError, r"\(3, 3\), expected \(3, 2\)")
    assert_refused(space, np.zeros((3, 2), complex), ActionTypeError, "complex128")
    envs = vector(space)
    envs.step(np.full((3, 2), 99))
    envs.step(np.full((3, 2), np.nan))
    received = envs.get_attr("received")[0]
    assert (received[0] == 99).all()
    assert np.isnan(received[1]).all()


def test_integer_box_refuses_values_out_of_range_of_its_dtype():
    space = spaces.Box(0, 255, (1,), np.uint8)
    assert_refused(space, [[0], [256], [0]], InvalidActionError, "slot 1: .* 256, .* 0 to 255")
    assert_refused(space, [[0], [0], [-1]], InvalidActionError, "slot 2: .* -1")
    assert_refused(space, [[0.0], [0.0], [1.0]], ActionTypeError, "float64, expected uint8")


def test_containers():
    space = spaces.Dict(
        {"a": spaces.Discrete(2), "b": spaces.Tuple((spaces.Discrete(3), spaces.Text(4)))}
    )
    good = {"a": [0, 1, 0], "b": ([0, 1, 2], ("x", "y", "z"))}
    vector(space).step(good)
    assert_refused(
        space, {"a": [0, 1, 0]}, InvalidActionError, r"without the key 'b'.*\['a', 'b'\]"
    )
    assert_refused(space, [0, 1, 0], InvalidActionError, "list without the key 'a'")
    assert_refused(
        space, {**good, "a": [0, 1]}, InvalidActionError, r"actions\['a'\]: got shape \(2,\)"
    )
    assert_refused(space, {**good, "b": ([0, 1, 2],)}, InvalidActionError, "a tuple of 2 batches")
    wrong = {**good, "b": ([0, 1, 3], good["b"][1])}
    assert_refused(space, wrong, InvalidActionError, r"slot 2: action\['b'\]\[0\] is 3")
    wrong = {**good, "b": (good["b"][0], ("x", "y"))}
    assert_refused(space, wrong, InvalidActionError, r"actions\['b'\]\[1\]: got 2 actions")
    wrong = {**good, "b": (good["b"][0], 5)}
    assert_refused(space, wrong, InvalidActionError, r"actions\['b'\]\[1\]: got int")


def test_array_subclasses_are_copied():
    class Named(np.ndarray):
        pass

    envs = vector(spaces.Box(-1, 1, (2,), np.float32))
    mine = np.ones((3, 2), np.float64).view(Named)
    kept = []
    for env in envs.envs:
        env.step = lambda action, step=env.step: (kept.append(action), step(action))[1]
    envs.step(mine)
    mine[:] = 5
    assert all((action == 1).all() for action in kept)


def test_dict_actions_have_the_key_order_of_the_batched_space():
    space = spaces.Dict(q=spaces.Discrete(2), b=spaces.Tuple((spaces.Dict(z=OBSERVATION),)))
    envs = vector(space)
    envs.step(envs.action_space.sample())
    assert list(envs.get_attr("received")[0][0]) == list(envs.action_space)


def test_ignored_actions_are_not_checked():
    class OneStep(RandomEnv):
        def step(self, action):
            return self.observation_space.sample(), 0.0, True, False, {}

    envs = shoal.make(partial(OneStep, OBSERVATION, spaces.Discrete(2)), num_envs=2)
    envs.reset(seed=0)
    envs.step([0, 1])
    envs.step([99, -99])
    with pytest.raises(InvalidActionError):
        envs.step([99, -99])
    envs.close()


def test_environments_may_keep_and_change_their_actions():
    class Keeper(RandomEnv):
        kept = None

        def step(self, action):
            if self.kept is None:
                self.kept = action
                action["push"] += 1
            return super().step(action)

    space = spaces.Dict({"push": spaces.Box(-9, 9, (2,), np.float64), "n": spaces.Discrete(4)})
    envs = shoal.make(partial(Keeper, OBSERVATION, space), num_envs=2)
    envs.reset(seed=0)
    mine = {"push": np.zeros((2, 2)), "n": np.array([1, 2])}
    envs.step(mine)
    mine["push"][:] = 5
    envs.step(mine)
    for slot, kept in enumerate(envs.get_attr("kept")):
        assert (kept["push"] == 1).all()
        assert kept["n"] == slot + 1
    assert (mine["push"] == 5).all()
    envs.close()


def test_error_classes_derive_from_those_of_other_libraries():
    assert issubclass(InvalidActionError, gymnasium.error.InvalidAction)
    assert issubclass(InvalidActionError, ValueError)
    assert issubclass(ActionTypeError, TypeError)
