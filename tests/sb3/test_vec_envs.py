"""DummyVecEnv and SubprocVecEnv."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from functools import partial

import gymnasium
import numpy as np
import pytest
import stable_baselines3.common.vec_env as sb3
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from stable_baselines3.common.monitor import Monitor

from shoal.errors import ActionTypeError, InvalidActionError, SpaceMismatchError, WorkerCrashedError
from shoal.sb3 import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
)
from tests.faulty import FaultyEnv, fault
from tests.sb3.environments import Box, Lamp, NoOptions, Taker
from tests.sb3.forking import BOTH


def boxes(count=3, **arguments):
    return [partial(Box, number, **arguments) for number in range(count)]


def lamps(count=3):
    return [partial(lambda number: Lamp(gymnasium.wrappers.OrderEnforcing(Box(number))), number)
            for number in range(count)]  # fmt: skip


@pytest.mark.parametrize("vec_env_class", [DummyVecEnv, SubprocVecEnv])
def test_instance_checks(vec_env_class):
    vec_env = vec_env_class(boxes())
    assert isinstance(vec_env, VecEnv)
    assert isinstance(vec_env, getattr(sb3, vec_env_class.__name__))
    assert VecEnv is sb3.VecEnv
    assert vec_env.unwrapped is vec_env
    assert (vec_env.num_envs, vec_env.action_space) == (3, Box.action_space)
    vec_env.close()


@BOTH
def test_seeds_and_options_are_used_once(vec_env_class):
    vec_env = vec_env_class(boxes())
    assert vec_env.seed(5) == [5, 6, 7]
    vec_env.set_options({"a": 1})
    vec_env.reset()
    assert [info["seed"] for info in vec_env.reset_infos] == [5, 6, 7]
    vec_env.reset()
    vec_env.set_options([{"b": 1}, {}, {"b": 3}])
    vec_env.reset()
    expected = [
        [(5 + slot, {"a": 1}), (None, None), (None, options)]
        for slot, options in enumerate([{"b": 1}, None, {"b": 3}])
    ]
    assert vec_env.get_attr("resets") == expected
    assert [info["options"] for info in vec_env.reset_infos] == [{"b": 1}, None, {"b": 3}]
    assert len(set(vec_env.seed())) == 3
    vec_env.close()


@BOTH
def test_reset_infos_are_those_of_the_last_reset(vec_env_class):
    vec_env = vec_env_class(boxes())
    vec_env.seed(5)
    vec_env.reset()
    _, _, dones, infos = vec_env.step(np.array([1, 4, 1]))
    assert dones.tolist() == [False, True, False]
    assert [info["seed"] for info in vec_env.reset_infos] == [5, None, 7]
    assert infos[0] == {"TimeLimit.truncated": False}
    assert infos[1].keys() == {"TimeLimit.truncated", "terminal_observation"}
    assert infos[1]["terminal_observation"].tolist() == [1.0, 4.0]
    vec_env.close()


@BOTH
def test_environment_without_options_parameter(vec_env_class):
    vec_env = vec_env_class([NoOptions] * 2)
    vec_env.reset()
    observations, _, dones, _ = vec_env.step([2, 1])
    assert observations.tolist() == [0, 1]
    assert dones.tolist() == [True, False]
    vec_env.close()


@BOTH
def test_returned_arrays_are_new_and_writable(vec_env_class):
    vec_env = vec_env_class(boxes())
    kept = [vec_env.reset()]
    for action in (1, 2, 3):
        observations, rewards, dones, infos = vec_env.step(np.full(3, action))
        assert (rewards.dtype, dones.dtype, type(infos)) == (np.float32, np.bool_, list)
        observations += 100
        rewards += 100
        kept.append(observations)
        assert rewards.tolist() == [100.0 + action] * 3
    assert [each[0, 1] for each in kept] == [-1.0, 101.0, 102.0, 103.0]
    vec_env.close()


@BOTH
def test_indices(vec_env_class):
    vec_env = vec_env_class(boxes())
    for indices, expected in [
        (None, [0, 1, 2]),
        (1, [1]),
        (np.int64(2), [2]),
        (-1, [2]),
        ([2, 0], [2, 0]),
        ((1, 1), [1, 1]),
        (np.array([0, 2]), [0, 2]),
        (range(1, 3), [1, 2]),
        ([], []),
    ]:
        assert vec_env.get_attr("number", indices) == expected
        assert vec_env.env_method("add", 10, two=5, indices=indices) == [15 + e for e in expected]
    for wrong in (3, -4, [0, 7]):
        with pytest.raises(IndexError, match="there are 3 environments"):
            vec_env.get_attr("number", wrong)
    vec_env.set_attr("number", 9, indices=[0, 2])
    assert vec_env.get_attr("number") == [9, 1, 9]
    vec_env.close()


@BOTH
def test_attributes_of_wrapped_environments(vec_env_class):
    vec_env = vec_env_class(lamps())
    assert vec_env.env_is_wrapped(Lamp, indices=[1]) == [True]
    assert vec_env.env_is_wrapped(gymnasium.wrappers.OrderEnforcing) == [True] * 3
    assert vec_env.env_is_wrapped(Monitor) == [False] * 3
    assert vec_env.has_attr("light")
    assert vec_env.has_attr("number")
    assert not vec_env.has_attr("darkness")
    vec_env.set_attr("number", 7, indices=1)
    assert vec_env.env_method("add", 0) == [0, 7, 2]
    vec_env.set_attr("light", "on")
    assert vec_env.get_attr("light") == ["on"] * 3
    with pytest.raises(AttributeError, match=r"'darkness'.*Box.*wrappers"):
        vec_env.set_attr("darkness", 1)
    with pytest.raises(AttributeError, match="darkness"):
        vec_env.get_attr("darkness")
    with pytest.raises(AttributeError, match="darkness"):
        vec_env.env_method("darkness")
    with pytest.raises(TypeError, match="not callable"):
        vec_env.env_method("number")
    vec_env.reset()
    vec_env.close()


@BOTH
def test_set_attr_adds_attributes_to_unwrapped_environments(vec_env_class):
    vec_env = vec_env_class(boxes())
    vec_env.set_attr("novelty", [1, 2])
    assert vec_env.get_attr("novelty") == [[1, 2]] * 3
    vec_env.close()


def test_set_attr_through_a_monitor():
    vec_env = DummyVecEnv([lambda: Monitor(Box())])
    vec_env.set_attr("novelty", 1)
    vec_env.set_attr("number", 2)
    assert vec_env.get_attr("novelty") == [1]
    assert vec_env.envs[0].unwrapped.number == 2
    with pytest.raises(AttributeError, match="darkness"):
        DummyVecEnv([lambda: Monitor(Lamp(Box()))]).set_attr("darkness", 1)


@BOTH
def test_env_method_passes_any_keyword(vec_env_class):
    class Slotted(Box):
        def place(self, slots, function):
            return slots, function

    vec_env = vec_env_class([Slotted] * 2)
    assert vec_env.env_method("place", slots=[1, 2], function=3) == [([1, 2], 3)] * 2
    vec_env.close()


@BOTH
def test_images(vec_env_class):
    vec_env = vec_env_class(boxes(render_mode="rgb_array"))
    assert vec_env.render_mode == "rgb_array"
    assert vec_env.metadata["render_modes"]
    assert [image[0, 0, 0] for image in vec_env.get_images()] == [0, 1, 2]
    tiled = vec_env.render()
    assert tiled.shape == (4, 6, 3)
    assert tiled[:, :, 0].tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 0, 0, 0]] * 2
    assert vec_env.render("rgb_array").shape == (4, 6, 3)
    with pytest.warns(UserWarning, match="ansi"):
        assert vec_env.render("ansi") is None
    vec_env.close()


@BOTH
def test_images_without_render_mode(vec_env_class):
    vec_env = vec_env_class(boxes())
    with pytest.warns(UserWarning, match="rgb_array"):
        assert list(vec_env.get_images()) == [None] * 3
    with pytest.warns(UserWarning, match="render_mode"):
        assert vec_env.render() is None
    vec_env.close()


def test_render_modes_must_agree():
    with pytest.raises(AssertionError, match="render_mode"):
        DummyVecEnv([partial(Box, render_mode="rgb_array"), Box])


@BOTH
def test_infos_are_not_changed_by_later_steps(vec_env_class):
    class Listing(Box):
        def step(self, action):
            self.resets.append(int(action))
            info = {"list": self.resets, "tuple": (self.resets, 1), "dict": {"list": self.resets}}
            return np.zeros(2), 0.0, False, False, info

    vec_env = vec_env_class([Listing] * 2)
    vec_env.reset()
    first = vec_env.step([1, 2])[3][0]
    vec_env.step([3, 4])
    assert first["list"][1:] == [1]
    assert first["tuple"] == (first["list"], 1)
    assert first["dict"] == {"list": first["list"]}
    vec_env.close()


class TestOptions:
    def test_array_options(self):
        vec_env = DummyVecEnv(boxes(2))
        vec_env.set_options([{"place": np.array([1.0, 2.0])}, {"place": np.array([1.0, 2.0])}])
        vec_env.reset()
        assert vec_env.reset_infos[1]["options"]["place"].tolist() == [1, 2]

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_wrong_number_of_options(self, count):
        vec_env = DummyVecEnv(boxes(2))
        vec_env.set_options([{"place": 1}] * count)
        with pytest.raises(ValueError, match=f"options for {count} of 2 environments"):
            vec_env.reset()
        assert vec_env.get_attr("resets") == [[], []]


class TestActions:
    @BOTH
    @pytest.mark.parametrize(
        "space", [spaces.MultiBinary(3), spaces.Box(-9, 9, (3,), np.int32)], ids=repr
    )
    def test_floats_are_cast_to_integers(self, vec_env_class, space):
        vec_env = vec_env_class([partial(Taker, space)] * 2)
        vec_env.reset()
        vec_env.step(np.array([[0, 1, 1], [1, 0, 0]], np.float32))
        assert [got.tolist() for got in vec_env.get_attr("got")] == [[0, 1, 1], [1, 0, 0]]
        assert vec_env.get_attr("got")[0].dtype == space.dtype
        for wrong in (0.5, np.nan):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                vec_env.step(np.array([[0, 1, wrong], [1, 0, 0]], np.float32))
        vec_env.close()

    @BOTH
    def test_invalid_actions_step_nothing(self, vec_env_class):
        vec_env = vec_env_class(boxes())
        vec_env.reset()
        for wrong in ([1, 2], [1, 2, 3, 4], [0, 5, 0], [[0], [0], [0]], 1, None, [0, "a", 0]):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                vec_env.step(wrong)
        assert vec_env.get_attr("steps") == [0, 0, 0]
        observations, *_ = vec_env.step((1, 2, 3))
        assert observations[:, 1].tolist() == [1, 2, 3]
        vec_env.close()

    def test_single_environment_accepts_an_unbatched_action(self):
        vec_env = DummyVecEnv([partial(Taker, spaces.Box(-1, 1, (2, 3)))])
        vec_env.reset()
        action = vec_env.action_space.sample()
        for given in (action, [action], action[None]):
            vec_env.step(given)
            assert vec_env.get_attr("got")[0].shape == (2, 3)
            np.testing.assert_array_equal(vec_env.get_attr("got")[0], action)
        for wrong in (action[:1], [[1.0], [2.0, 3.0]]):
            with pytest.raises(InvalidActionError):
                vec_env.step(wrong)

    @BOTH
    def test_second_pending_step_is_refused(self, vec_env_class):
        vec_env = vec_env_class(boxes())
        vec_env.reset()
        vec_env.step_async([1, 1, 1])
        with pytest.raises(AlreadyPendingCallError):
            vec_env.step_async([2, 2, 2])
        assert vec_env.step_wait()[1].tolist() == [1, 1, 1]
        with pytest.raises(NoAsyncCallError):
            vec_env.step_wait()
        vec_env.close()

    @BOTH
    def test_reset_discards_a_pending_step(self, vec_env_class):
        vec_env = vec_env_class(boxes())
        vec_env.reset()
        vec_env.step_async([1, 1, 1])
        assert vec_env.reset()[:, 1].tolist() == [-1, -1, -1]
        assert vec_env.step([2, 2, 2])[1].tolist() == [2, 2, 2]
        vec_env.close()

    @BOTH
    def test_dict_and_tuple_actions(self, vec_env_class):
        class Nested(Box):
            action_space = spaces.Dict(
                a=spaces.Discrete(3), b=spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Discrete(2)))
            )

            def step(self, action):
                self.got = action
                return np.zeros(2), 0.0, False, False, {}

        vec_env = vec_env_class([Nested] * 2)
        vec_env.reset()
        Nested.action_space.seed(1)
        actions = [Nested.action_space.sample() for _ in range(2)]
        vec_env.step(actions)
        for got, expected in zip(vec_env.get_attr("got"), actions, strict=True):
            assert got["a"] == expected["a"]
            assert got["b"][0].tolist() == expected["b"][0].tolist()
            assert got["b"][1] == expected["b"][1]
        with pytest.raises(InvalidActionError, match="1 actions for 2"):
            vec_env.step(actions[:1])
        with pytest.raises(InvalidActionError, match="slot 1 has no part"):
            vec_env.step([actions[0], {"a": 1}])
        with pytest.raises(InvalidActionError, match="a sequence of 2 actions"):
            vec_env.step({"a": [1, 1]})
        vec_env.close()


class TestConstruction:
    @BOTH
    def test_no_environments(self, vec_env_class):
        with pytest.raises(ValueError, match="at least one"):
            vec_env_class([])

    @BOTH
    def test_environments_instead_of_functions(self, vec_env_class):
        with pytest.raises(TypeError, match="a function that makes an environment"):
            vec_env_class([Box()])

    @BOTH
    def test_functions_that_return_no_environment(self, vec_env_class):
        with pytest.raises(ValueError, match=r"type <class 'dict'>.*gymnasium\.Env"):
            vec_env_class([dict])

    def test_same_environment_twice(self):
        env = Box()
        with pytest.raises(ValueError, match="the same instance"):
            DummyVecEnv([lambda: env, lambda: env])
        with pytest.raises(ValueError, match="the same instance"):
            DummyVecEnv([lambda: Lamp(env), lambda: env])

    @pytest.mark.parametrize("caller_works", [True, False])
    def test_same_environment_twice_in_a_process(self, caller_works):
        env = Box()
        with pytest.raises(ValueError, match="the same instance as that of slot"):
            SubprocVecEnv([lambda: env] * 4, workers=1, caller_works=caller_works)

    @BOTH
    def test_different_spaces(self, vec_env_class):
        class Wider(Box):
            observation_space = spaces.Box(-1, 1, (3,))

        class Busier(Box):
            action_space = spaces.Discrete(6)

        for other in (Wider, Busier):
            with pytest.raises(SpaceMismatchError, match=r"[Ss]lot 1"):
                vec_env_class([Box, other])

    @BOTH
    def test_failing_constructor(self, vec_env_class):
        start = time.monotonic()
        with pytest.raises(ArithmeticError, match="fails in init"):
            vec_env_class([FaultyEnv, partial(FaultyEnv, fails_in="init"), FaultyEnv])
        assert time.monotonic() - start < 20

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_start_methods(self, method):
        vec_env = SubprocVecEnv([partial(gymnasium.make, "CartPole-v1")] * 2, start_method=method)
        assert vec_env.reset().shape == (2, 4)
        vec_env.close()

    def test_unknown_start_method(self):
        with pytest.raises(ValueError, match="cannot find context for 'teleport'"):
            SubprocVecEnv([Box], start_method="teleport")

    def test_unpicklable_factories(self):
        lock = open(os.devnull)  # noqa: SIM115
        vec_env = SubprocVecEnv([lambda: (lock, Box())[1]] * 2)
        assert vec_env.reset().shape == (2, 2)
        vec_env.close()
        lock.close()


class TestErrors:
    @BOTH
    @pytest.mark.parametrize("kind", ["raise", "odd error", "unpicklable error"])
    def test_errors_keep_their_type(self, vec_env_class, kind):
        vec_env = vec_env_class([partial(FaultyEnv, label) for label in range(3)])
        vec_env.reset()
        with pytest.raises((ArithmeticError, ValueError, LookupError), match=r"0 (fails|is|holds)"):
            vec_env.step([fault(kind), 0, 0])
        vec_env.close()

    @BOTH
    def test_vector_is_usable_after_an_error(self, vec_env_class):
        vec_env = vec_env_class([partial(FaultyEnv, label) for label in range(3)])
        vec_env.reset()
        with pytest.raises(ArithmeticError):
            vec_env.step([0, fault("raise"), 0])
        assert vec_env.reset().shape == (3, 2)
        assert vec_env.step([0, 0, 0])[1].tolist() == [0, 1, 2]
        vec_env.close()

    def test_killed_worker_is_detected(self):
        vec_env = SubprocVecEnv([partial(FaultyEnv, label) for label in range(4)])
        vec_env.reset()
        start = time.monotonic()
        os.kill(vec_env.env_method("pid", indices=0)[0], signal.SIGKILL)
        with pytest.raises(WorkerCrashedError, match="SIGKILL"):
            vec_env.step([0] * 4)
        assert time.monotonic() - start < 5
        vec_env.close()

    @pytest.mark.parametrize("how", ["kill", "exit", "segfault"])
    def test_worker_that_dies_during_a_step(self, how):
        vec_env = SubprocVecEnv([partial(FaultyEnv, label) for label in range(4)])
        vec_env.reset()
        with pytest.raises(WorkerCrashedError):
            vec_env.step([fault(how), 0, 0, 0])
        with pytest.raises(WorkerCrashedError):
            vec_env.get_attr("label")
        vec_env.close()
        vec_env.close()

    def test_restart_after_a_crash(self):
        vec_env = SubprocVecEnv(
            [partial(FaultyEnv, label) for label in range(4)], workers=4, on_crash="restart"
        )
        vec_env.reset()
        vec_env.step([0] * 4)
        observations, rewards, dones, infos = vec_env.step([0, fault("kill"), 0, 0])
        assert dones.tolist() == [False, True, False, False]
        assert rewards.tolist() == [0, 0, 2, 3]
        assert infos[1]["crashed"]
        assert infos[1]["TimeLimit.truncated"] is True
        assert infos[1]["terminal_observation"][1] == 1.0
        assert observations[:, 1].tolist() == [2, 0, 2, 2]
        assert vec_env.step([0] * 4)[1].tolist() == [0, 1, 2, 3]
        vec_env.close()

    def test_hanging_environment_is_restarted(self):
        vec_env = SubprocVecEnv([FaultyEnv] * 2, workers=2, on_crash="restart", step_timeout=0.5)
        vec_env.reset()
        _, _, dones, infos = vec_env.step([0, fault("sleep")])
        assert dones.tolist() == [False, True]
        assert infos[1]["crashed"]
        vec_env.close()

    @BOTH
    def test_using_a_closed_vector_is_refused(self, vec_env_class):
        vec_env = vec_env_class(boxes())
        vec_env.close()
        vec_env.close()
        for use in (
            vec_env.reset,
            partial(vec_env.step, [0, 0, 0]),
            partial(vec_env.get_attr, "x"),
        ):
            with pytest.raises(ClosedEnvironmentError):
                use()

    def test_close_during_a_step(self):
        vec_env = SubprocVecEnv([FaultyEnv] * 4)
        vec_env.reset()
        vec_env.step_async([fault("wait")] * 4)
        assert vec_env.waiting
        vec_env.close()
        assert vec_env.closed


def test_interrupt_ends_a_wait():
    script = """
import os, signal, threading
from functools import partial
from shoal.sb3 import SubprocVecEnv
from tests.faulty import FaultyEnv, fault
vec_env = SubprocVecEnv([FaultyEnv] * 4)
vec_env.reset()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    vec_env.step([fault("sleep"), 0, 0, 0])
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=25
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import gymnasium as gym
from shoal.sb3 import SubprocVecEnv
class Own(gym.Wrapper):
    pass
vec_env = SubprocVecEnv([lambda: Own(gym.make("CartPole-v1"))] * 4)
print(vec_env.reset().shape, vec_env.env_is_wrapped(Own))
vec_env.close()
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "(4, 4) [True, True, True, True]\n", done.stderr


class TestCopies:
    def test_copies_of_vectors(self):
        vec_env = DummyVecEnv([partial(gymnasium.make, "CartPole-v1")] * 2)
        vec_env.seed(1)
        vec_env.reset()
        vec_envs = [vec_env, copy.deepcopy(vec_env), pickle.loads(pickle.dumps(vec_env))]
        for _ in range(60):
            results = [each.step(np.array([1, 0])) for each in vec_envs]
            for other in results[1:]:
                assert results[0][0].tobytes() == other[0].tobytes()
                assert results[0][2].tobytes() == other[2].tobytes()

    def test_copies_of_wrappers(self):
        wrapper = VecMonitor(DummyVecEnv(boxes()))
        wrapper.reset()
        copied = copy.deepcopy(wrapper)
        wrapper.step([1, 1, 1])
        assert wrapper.episode_returns.tolist() == [1, 1, 1]
        assert copied.episode_returns.tolist() == [0, 0, 0]
        assert pickle.loads(pickle.dumps(copied)).num_envs == 3

    def test_copies_of_vectors_with_workers_are_refused(self):
        vec_env = SubprocVecEnv(boxes())
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            pickle.dumps(vec_env)
        vec_env.close()


class TestWrappers:
    class Named(VecEnvWrapper):
        def __init__(self, venv, name):
            super().__init__(venv)
            self.own = name
            setattr(self, f"only_{name}", name)

        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            return self.venv.step_wait()

    def test_attributes_of_wrapped_vectors(self):
        wrapped = self.Named(self.Named(DummyVecEnv(boxes()), "lower"), "upper")
        assert (wrapped.only_upper, wrapped.only_lower) == ("upper", "lower")
        assert wrapped.own == "upper"
        assert len(wrapped.envs) == 3
        assert wrapped.unwrapped is wrapped.venv.venv
        with pytest.raises(AttributeError, match="nowhere"):
            _ = wrapped.nowhere

    def test_ambiguous_attributes(self):
        lower = self.Named(self.Named(DummyVecEnv(boxes()), "low"), "lower")
        lower.shared = lower.venv.shared = 1
        wrapped = self.Named(lower, "upper")
        with pytest.raises(AttributeError, match=r"ambiguous.*Named"):
            _ = wrapped.shared
        assert wrapped.getattr_depth_check("shared", already_found=False).endswith("Named")
        assert wrapped.getattr_depth_check("only_low", already_found=False) is None

    def test_calls_are_forwarded(self):
        wrapped = self.Named(DummyVecEnv(lamps()), "upper")
        wrapped.seed(4)
        wrapped.set_options({"a": 1})
        wrapped.reset()
        assert [info["seed"] for info in wrapped.reset_infos] == [4, 5, 6]
        assert wrapped.env_method("add", 1, indices=[0]) == [1]
        assert wrapped.env_is_wrapped(Lamp) == [True] * 3
        assert wrapped.has_attr("light")
        with pytest.raises(AttributeError, match="darkness"):
            wrapped.set_attr("darkness", 1)

    def test_wrapping_stable_baselines3_vectors(self):
        wrapped = VecMonitor(self.Named(sb3.DummyVecEnv(boxes()), "middle"))
        wrapped.reset()
        assert wrapped.step([4, 0, 0])[3][0]["episode"]["r"] == 4
        around = sb3.VecMonitor(wrapped)
        around.reset()
        assert around.step([4, 0, 0])[3][0]["episode"]["l"] == 1


def test_no_resources_are_leaked():
    def descriptors():
        gc.collect()  # exclude objects of earlier tests
        return len(os.listdir("/proc/self/fd"))

    before = None
    for _ in range(4):
        vec_env = SubprocVecEnv(boxes())
        vec_env.reset()
        pid = vec_env._pool._transport.pid(0)
        vec_env.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        before = before or descriptors()
        assert descriptors() <= before


def test_deleted_vector_ends_its_workers():
    vec_env = SubprocVecEnv(boxes())
    pid = vec_env._pool._transport.pid(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del vec_env
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_errors_at_interpreter_exit(tmp_path):
    script = """
from shoal.sb3 import VecVideoRecorder, make_vec_env
vec_env = VecVideoRecorder(make_vec_env("CartPole-v1"), "videos", lambda step: False)
vec_env.reset()
vec_env.render()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("name", ["mro", "register", "missing"])
def test_wrappers_do_not_expose_metaclass_attributes(name):
    assert not hasattr(VecMonitor(DummyVecEnv(boxes())), name)


def test_instances_of_either_library():
    theirs = sb3.VecMonitor(sb3.DummyVecEnv([Box]))
    assert isinstance(theirs, VecMonitor)
    assert isinstance(theirs, VecEnvWrapper)
    assert isinstance(theirs.venv, DummyVecEnv)
    assert not isinstance(theirs, VecNormalize)
    assert not isinstance(theirs, DummyVecEnv)
    assert not isinstance(theirs.venv, SubprocVecEnv)

    class Own(VecMonitor):
        pass

    assert not isinstance(theirs, Own)
    assert isinstance(Own(DummyVecEnv([Box])), sb3.VecMonitor)


def test_step_wait_can_be_overridden():
    class Louder(DummyVecEnv):
        def step_wait(self):
            observations, rewards, dones, infos = super().step_wait()
            return observations, rewards * 10, dones, infos

    vec_env = Louder(boxes())
    vec_env.reset()
    assert vec_env.step([1, 2, 3])[1].tolist() == [10, 20, 30]
