"""Hockey with PettingZoo's interface, and vectors of matches stepped by the kernel."""

import warnings
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from supersuit import concat_vec_envs_v1, pettingzoo_env_to_vec_env_v1

import shoal
from shoal.errors import ActionTypeError, InvalidActionError
from shoal.hockey import HockeyEnv
from shoal.pettingzoo import hockey_v0, make
from shoal.testing import assert_identical
from tests.pettingzoo.environments import Crowd

KINDS = [{}, {"discrete": True}, {"mode": "TRAIN_SHOOTING"}, {"keep_mode": False}]


@pytest.mark.parametrize("arguments", KINDS, ids=str)
def test_pettingzoos_api_tests_pass_without_warnings(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(hockey_v0.parallel_env(**arguments), 300)
        parallel_seed_test(partial(hockey_v0.parallel_env, **arguments), 100)


def test_aec_environment():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Agent's m.* observation space value")
        api_test(hockey_v0.env(), 300)


def test_match_equals_the_reference_interface():
    match, reference = hockey_v0.parallel_env(render_mode="rgb_array"), HockeyEnv()
    with pytest.raises(ResetNeeded):
        match.step({})
    observations, infos = match.reset(seed=4, options={"one_starting": True, "unknown": 1})
    first, info = reference.reset(seed=4, one_starting=True)
    rng = np.random.default_rng(0)
    while match.agents:
        assert_identical(observations["player_1"], first)
        assert_identical(observations["player_2"], reference.obs_agent_two())
        assert_identical(match.state(), first)
        assert infos == {"player_1": info, "player_2": reference.get_info_agent_two()}
        actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
        observations, rewards, terminations, truncations, infos = match.step(
            dict(zip(match.possible_agents, actions, strict=True))
        )
        first, reward, terminated, truncated, info = reference.step(actions.ravel())
        assert rewards["player_1"] == pytest.approx(reward)
        assert terminations == dict.fromkeys(rewards, terminated)
        assert truncations == dict.fromkeys(rewards, truncated)
    assert match.render().shape == (480, 600, 3)
    with pytest.raises(ResetNeeded):
        match.step({})
    match.reset()
    with pytest.raises(InvalidActionError, match="player_2"):
        match.step({"player_1": np.zeros(4)})
    match.close()
    match.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("info_format", ["dict", "list"])
@pytest.mark.parametrize("shape", ["batch", "dict"])
def test_kernel_and_python_matches_are_identical(mode, discrete, shape, info_format):
    """The trajectories are equal, including infos, in every autoreset mode."""
    native, python = (
        make(
            hockey_v0.parallel_env,
            3,
            shape=shape,
            discrete=discrete,
            mode="TRAIN_DEFENSE",  # a mode with short episodes
            opponent="weak" if discrete else None,
            autoreset_mode=mode,
            info_format=info_format,
            backend=backend,
        )
        for backend in ("auto", "inline")
    )
    assert native.plan.backend == "kernel"
    with native, python:
        assert_identical(sorted_infos(native.reset(seed=2)), sorted_infos(python.reset(seed=2)))
        for step in range(100):
            if shape == "batch":
                python.action_space.seed(step)
                actions = python.action_space.sample()
            else:
                for agent in python.possible_agents:
                    python.batched_action_space(agent).seed(step)
                actions = {a: python.batched_action_space(a).sample() for a in python.agents}
            actual, expected = native.step(actions), python.step(actions)
            assert_identical(sorted_infos(actual), sorted_infos(expected))
            terminated, truncated = actual[2:4]
            if shape == "dict":
                terminated, truncated = terminated["player_1"], truncated["player_1"]
            ended = terminated | truncated
            if mode is AutoresetMode.DISABLED and ended.any():
                mask = {"reset_mask": ended}
                actual, expected = native.reset(options=mask), python.reset(options=mask)
                assert_identical(sorted_infos(actual), sorted_infos(expected))


def sorted_infos(result):
    """Sort infos by key, because column infos have another order."""
    return *result[:-1], _sorted(result[-1])


def _sorted(infos):
    if isinstance(infos, list):
        return [_sorted(info) for info in infos]
    if isinstance(infos, dict):
        return {key: _sorted(infos[key]) for key in sorted(infos)}
    return infos


def test_ids_select_kernel_or_python_matches():
    for name, size in (("shoal/Hockey-v0", (4,)), ("shoal/HockeyDiscrete-v0", ())):
        for backend in ("kernel", "inline"):
            with make(name, 2, backend=backend, mode="TRAIN_SHOOTING") as envs:
                assert envs.single_action_space.shape == size
                assert envs.plan.backend == backend
                assert envs.get_attr("render_mode") == (None, None)
            with make(name, 2, backend=backend, discrete=True, opponent="weak") as envs:
                assert envs.single_action_space.shape == ()
    with pytest.raises(ValueError, match="HockeyOne"):
        make("shoal/HockeyOne-v0", 2)
    with pytest.raises(ValueError, match="kernel"):
        make([hockey_v0.parallel_env], backend="kernel")


def test_invalid_actions_do_not_step_the_kernel():
    with make("shoal/Hockey-v0", 3) as envs:
        envs.reset(seed=0)
        before = envs._owner.save()
        for invalid in (np.zeros((5, 4)), np.zeros((6, 3)), np.zeros(24), None, [[0.0] * 4, [0.0]]):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                envs.step(invalid)
        assert_identical(envs._owner.save(), before)
    with make("shoal/HockeyDiscrete-v0", 3, shape="dict") as envs:
        envs.reset(seed=0)
        with pytest.raises(InvalidActionError, match="slot 1") as caught:
            envs.step({"player_1": [1, 2, 3], "player_2": [1, 8, 3]})
        assert "player_2" in "".join(caught.value.__notes__)
        with pytest.raises(InvalidActionError, match="for 2"):
            envs.step({"player_1": [1, 2, 3], "player_2": [1, 2]})


def test_results_equal_supersuits():
    theirs = concat_vec_envs_v1(
        pettingzoo_env_to_vec_env_v1(hockey_v0.parallel_env(mode="TRAIN_SHOOTING")), 3
    )
    ours = make(hockey_v0.parallel_env, 3, mode="TRAIN_SHOOTING", autoreset_mode="SameStep")
    with ours:
        assert_identical(ours.reset(seed=7)[0], theirs.reset(seed=7)[0])
        ours.action_space.seed(1)
        any_truncated = False
        for _ in range(100):
            actions = ours.action_space.sample()
            observations, rewards, terminated, truncated, infos = ours.step(actions)
            expected, their_rewards, terminations, truncations, their_infos = theirs.step(actions)
            assert_identical(observations, expected)
            assert_identical(rewards.astype(np.float32), their_rewards)
            assert (terminated == terminations).all()
            assert (truncated == truncations).all()
            for row in np.flatnonzero(terminated | truncated):
                last = their_infos[row]["terminal_observation"]
                assert_identical(infos["final_obs"][row], last)
            any_truncated |= truncated.any()
        assert any_truncated
        # Differences: SuperSuit has neither batched spaces nor Gymnasium's infos.
        assert ours.action_space.shape == (6, 4)
        assert theirs.action_space.shape == (4,)
        assert isinstance(infos, dict)
    theirs.close()


def test_statistics_of_thousands_of_matches():
    with make("shoal/Hockey-v0", 2000, autoreset_mode="SameStep", statistics=True) as envs:
        assert envs.reset(seed=1)[0].shape == (4000, 18)
        returns, lengths, episodes = np.zeros(4000), np.zeros(4000, int), 0
        for _ in range(60):
            _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
            returns += rewards
            lengths += 1
            ended = terminated | truncated
            assert infos["alive"].all()
            if ended.any():
                assert_identical(infos["_episode"], ended)
                assert_identical(infos["episode"]["r"][ended], returns[ended])
                assert_identical(infos["episode"]["l"][ended], lengths[ended])
                returns[ended] = lengths[ended] = 0
                episodes += ended.sum()
        assert episodes


def test_send_and_recv_of_single_matches():
    with make("shoal/Hockey-v0", 4) as envs, make("shoal/Hockey-v0", 4) as reference:
        assert_identical(envs.reset(seed=1), reference.reset(seed=1))
        for _ in range(5):
            actions = reference.action_space.sample()
            expected = reference.step(actions)
            for matches in ([2, 0], [1, 3]):
                slots = envs.slots_of(matches)
                envs.send(actions[slots], slots)
                batch = envs.recv(slots=slots)
                assert_identical(batch.slots, slots)
                assert_identical(batch.observations, expected[0][slots])
                assert_identical(batch.rewards, expected[1][slots])


def test_supersuit_does_not_support_agents_that_end_early():
    theirs = concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(Crowd(strict=False)), 2)

    def play():
        theirs.reset(seed=1)
        for _ in range(40):
            theirs.step(np.full(theirs.num_envs, 2))

    with pytest.raises(AssertionError, match="agent death"):
        play()


def test_kernel_views_are_not_copied():
    with (
        make("shoal/Hockey-v0", 50, copy=False) as envs,
        shoal.make("shoal/Hockey-v0", 50) as reference,
    ):
        assert_identical(envs.reset(seed=1)[0], reference.reset(seed=1)[0].reshape(100, 18))
        actions = np.zeros((100, 4), np.float32)
        addresses = {envs.step(actions)[0].ctypes.data for _ in range(9)}
        assert len(addresses) == 3
