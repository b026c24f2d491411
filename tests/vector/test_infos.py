"""Infos in Gymnasium's format, without loss, and in the other formats."""

import warnings
from collections import UserDict
from enum import IntEnum
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.testing import assert_identical


class Scripted(gymnasium.Env):
    """Returns given infos; episodes have `length` steps."""

    observation_space = spaces.Box(-1, 100, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, infos, length=1000, reset_info=None):
        self._infos = infos
        self._length = length
        self._reset_info = reset_info or {}
        self._time = 0

    def _observation(self):
        return np.full(2, self._time, np.float32)

    def reset(self, *, seed=None, options=None):
        self._time = 0
        return self._observation(), self._reset_info

    def step(self, action):
        info = self._infos[self._time % len(self._infos)]
        self._time += 1
        return self._observation(), 1.0, self._time >= self._length, False, info


class Color(IntEnum):
    RED = 1


def infos_of(*infos, **options):
    """Return the infos of the first step if slot k returns the k-th info."""
    with shoal.make([partial(Scripted, [info]) for info in infos], **options) as envs:
        envs.reset()
        return envs.step([0] * len(infos))[4]


def column(*values):
    """Return the column of a key if slot k returns the k-th value; `...` for no value."""
    infos = infos_of(*({} if value is ... else {"key": value} for value in values))
    assert_identical(infos["_key"], np.array([value is not ... for value in values]))
    return infos["key"]


def test_without_infos_the_dict_is_empty():
    assert infos_of({}, {}) == {}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 0.5), np.array([1.0, 0.5])),
        ((0.5, 1), np.array([0.5, 1.0])),
        ((True, 2), np.array([1, 2])),
        ((2, ..., 0.5), np.array([2.0, 0.0, 0.5])),
        ((np.float32(0.1), 0.1), np.array([np.float32(0.1), 0.1])),
        ((np.int8(1), 300), np.array([1, 300])),
        ((np.zeros(2, np.int8), np.full(2, 0.5)), np.array([[0.0, 0.0], [0.5, 0.5]])),
        ((np.array(["ab"]), np.array(["abcd"])), np.array([["ab"], ["abcd"]])),
        ((True, np.bool_(False)), np.array([True, False])),
        ((1, np.bool_(True)), np.array([1, 1])),
        ((np.uint64(2**64 - 1), 1), np.array([2**64 - 1, 1], np.uint64)),
        ((np.complex64(1j), 0.5), np.array([1j, 0.5], np.complex128)),
        ((np.float32(np.nan), 1), np.array([np.nan, 1.0])),
    ],
)
def test_numbers_are_promoted_without_loss(values, expected):
    assert_identical(column(*values), expected)


@pytest.mark.parametrize(
    "values",
    [
        (1, "text"),
        ("text", 1),
        (1, None, ...),
        ({"a": 1}, 2),
        (2, {"a": 1}),
        (2**80, 1),
        (2**53 + 1, 0.5),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), 5),
        (1.0, [1, 2]),
        (np.bool_(True), 1),
        (2, Color.RED),
        (Color.RED, 2),
        (np.uint64(2**64 - 1), -1),
    ],
)
def test_incompatible_values_become_objects(values):
    got = column(*values)
    assert got.dtype == object
    for mine, value in zip(got, values, strict=True):
        assert_identical(mine, None if value is ... else value)


def test_merging_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column(np.uint64(2**64 - 1), -1)
        column(np.complex64(1j), 0.5)


def test_recursive_infos_raise_recursion_error():
    loop = {}
    loop["self"] = loop
    deep = {}
    for _ in range(200_000):
        deep = {"deeper": deep}
    for info in (loop, deep):
        with shoal.make(partial(Scripted, [info])) as envs:
            envs.reset()
            with pytest.raises(RecursionError, match="info"):
                envs.step([0])
    while deep:  # dismantle it, since deallocation would recurse
        deep = deep.popitem()[1]


def test_infos_may_be_any_mapping():
    assert_identical(infos_of(UserDict(a=1)), {"a": np.array([1]), "_a": np.array([True])})


def test_nested_dicts_with_different_keys():
    infos = infos_of({"a": {"x": 1, "y": 1}}, {"a": {"x": 0.5}}, {})
    expected = {
        "a": {
            "x": np.array([1.0, 0.5, 0.0]),
            "_x": np.array([True, True, False]),
            "y": np.array([1, 0, 0]),
            "_y": np.array([True, False, False]),
        },
        "_a": np.array([True, True, False]),
    }
    assert_identical(infos, expected)


def test_frozen_lake_probabilities_are_not_truncated():
    with shoal.make("FrozenLake-v1", num_envs=4) as envs:
        _, infos = envs.reset(seed=0)
        assert_identical(infos["prob"], np.ones(4, np.int64))
        prob = envs.step([1, 1, 1, 1])[4]["prob"]
        np.testing.assert_allclose(prob, 1 / 3)


def test_reused_info_dicts_are_copied():
    shared = {"number": 0, "array": np.zeros(1)}

    class Sharing(Scripted):
        def __init__(self, number):
            super().__init__([shared])
            self._number = number

        def step(self, action):
            result = super().step(action)
            shared["number"] = self._number
            shared["array"][0] = self._number
            return result

    with shoal.make([partial(Sharing, number) for number in range(3)]) as envs:
        envs.reset()
        infos = envs.step([0, 0, 0])[4]
    assert_identical(infos["number"], np.array([0, 1, 2]))
    assert_identical(infos["array"], np.array([[0.0], [1.0], [2.0]]))


def test_list_format_is_a_dict_for_each_slot():
    assert infos_of({"a": 1}, {}, {"b": "x"}, info_format="list") == [{"a": 1}, {}, {"b": "x"}]
    assert infos_of({}, {}, info_format="list") == [{}, {}]


def test_pre_1_0_format():
    factories = [
        partial(Scripted, [{"score": 7}], length=2, reset_info={"fresh": 1}),
        partial(Scripted, [{"score": 8}], length=9),
    ]
    with shoal.make(factories, info_format="pre-1.0", statistics=True) as envs:
        assert envs.autoreset_mode is AutoresetMode.SAME_STEP
        envs.reset()
        assert "final_info" not in envs.step([0, 0])[4]
        observations, _, terminated, _, infos = envs.step([0, 0])

    assert_identical(terminated, np.array([True, False]))
    assert_identical(observations[0], np.zeros(2, np.float32))
    assert_identical(infos["final_observation"][0], np.full(2, 2, np.float32))
    assert infos["final_observation"][1] is None
    assert_identical(infos["_final_observation"], np.array([True, False]))
    ended = [info for info in infos["final_info"] if info is not None]
    assert len(ended) == 1
    assert ended[0]["score"] == 7
    assert ended[0]["episode"]["r"] == 2.0
    assert ended[0]["episode"]["l"] == 2
    assert_identical(infos["fresh"], np.array([1, 0]))


def test_pre_1_0_format_refuses_other_autoreset_modes():
    with pytest.raises(ValueError, match="SAME_STEP"):
        shoal.make("CartPole-v1", info_format="pre-1.0", autoreset_mode=AutoresetMode.NEXT_STEP)


def test_statistics_do_not_overwrite_infos_of_environments():
    wrappers = [gymnasium.wrappers.RecordEpisodeStatistics]
    for form in ("dict", "list", "pre-1.0"):
        factory = partial(Scripted, [{}], length=1)
        envs = shoal.make(factory, statistics=True, wrappers=wrappers, info_format=form)
        envs.reset()
        with pytest.raises(ValueError, match="'episode'"):
            envs.step([0])
        envs.close()


def test_environments_may_use_the_info_key_final_obs():
    assert infos_of({"final_obs": 3}, info_format="pre-1.0")["final_obs"].tolist() == [3]
    assert infos_of({"final_obs": 3}, info_format="list") == [{"final_obs": 3}]
