"""Hockey behind PettingZoo's interface, and thousands of matches straight from the kernel."""

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
def test_pettingzoos_own_tests_pass_without_a_warning(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(hockey_v0.parallel_env(**arguments), 300)
        parallel_seed_test(partial(hockey_v0.parallel_env, **arguments), 100)


def test_players_can_act_one_after_the_other():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Agent's m.* observation space value")
        api_test(hockey_v0.env(), 300)


def test_a_match_is_that_of_the_reference_interface():
    match, reference = hockey_v0.parallel_env(render_mode="rgb_array"), HockeyEnv()
    with pytest.raises(ResetNeeded):
        match.step({})
    seen, infos = match.reset(seed=4, options={"one_starting": True, "unknown": 1})
    first, info = reference.reset(seed=4, one_starting=True)
    rng = np.random.default_rng(0)
    while match.agents:
        assert_identical(seen["player_1"], first)
        assert_identical(seen["player_2"], reference.obs_agent_two())
        assert_identical(match.state(), first)
        assert infos == {"player_1": info, "player_2": reference.get_info_agent_two()}
        actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
        seen, rewards, ends, cuts, infos = match.step(
            dict(zip(match.possible_agents, actions, strict=True))
        )
        first, reward, terminated, truncated, info = reference.step(actions.ravel())
        assert rewards["player_1"] == pytest.approx(reward)
        assert ends == dict.fromkeys(rewards, terminated)
        assert cuts == dict.fromkeys(rewards, truncated)
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
def test_the_kernel_gives_what_matches_in_python_give(mode, discrete, shape, info_format):
    """Both have the same trajectories, infos included, in any mode."""
    native, python = (
        make(
            hockey_v0.parallel_env,
            3,
            shape=shape,
            discrete=discrete,
            mode="TRAIN_DEFENSE",  # which is over soon
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
            got, expected = native.step(actions), python.step(actions)
            assert_identical(sorted_infos(got), sorted_infos(expected))
            ended = got[2] | got[3] if shape == "batch" else got[2]["player_1"] | got[3]["player_1"]
            if mode is AutoresetMode.DISABLED and ended.any():
                mask = {"reset_mask": ended}
                got, expected = native.reset(options=mask), python.reset(options=mask)
                assert_identical(sorted_infos(got), sorted_infos(expected))


def sorted_infos(result):
    """Infos come in another order where they are columns."""
    return *result[:-1], _sorted(result[-1])


def _sorted(infos):
    if isinstance(infos, list):
        return [_sorted(info) for info in infos]
    if isinstance(infos, dict):
        return {key: _sorted(infos[key]) for key in sorted(infos)}
    return infos


def test_names_are_matches_too():
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


def test_actions_of_the_kernel_are_checked_before_anything_is_stepped():
    with make("shoal/Hockey-v0", 3) as envs:
        envs.reset(seed=0)
        before = envs._owner.save()
        for wrong in (np.zeros((5, 4)), np.zeros((6, 3)), np.zeros(24), None, [[0.0] * 4, [0.0]]):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                envs.step(wrong)
        assert_identical(envs._owner.save(), before)
    with make("shoal/HockeyDiscrete-v0", 3, shape="dict") as envs:
        envs.reset(seed=0)
        with pytest.raises(InvalidActionError, match="slot 1") as caught:
            envs.step({"player_1": [1, 2, 3], "player_2": [1, 8, 3]})
        assert "player_2" in "".join(caught.value.__notes__)
        with pytest.raises(InvalidActionError, match="for 2"):
            envs.step({"player_1": [1, 2, 3], "player_2": [1, 2]})


def test_what_supersuit_gets_right_is_the_same():
    theirs = concat_vec_envs_v1(
        pettingzoo_env_to_vec_env_v1(hockey_v0.parallel_env(mode="TRAIN_SHOOTING")), 3
    )
    ours = make(hockey_v0.parallel_env, 3, mode="TRAIN_SHOOTING", autoreset_mode="SameStep")
    with ours:
        assert_identical(ours.reset(seed=7)[0], theirs.reset(seed=7)[0])
        ours.action_space.seed(1)
        was_cut = False
        for _ in range(100):
            actions = ours.action_space.sample()
            observations, rewards, terminated, truncated, infos = ours.step(actions)
            expected, their_rewards, ends, cuts, their_infos = theirs.step(actions)
            assert_identical(observations, expected)
            assert_identical(rewards.astype(np.float32), their_rewards)
            assert (terminated == ends).all()
            assert (truncated == cuts).all()
            for row in np.flatnonzero(terminated | truncated):
                last = their_infos[row]["terminal_observation"]
                assert_identical(infos["final_obs"][row], last)
            was_cut |= truncated.any()
        assert was_cut
        # And what it does not: batched spaces, and infos as Gymnasium has them.
        assert ours.action_space.shape == (6, 4)
        assert theirs.action_space.shape == (4,)
        assert isinstance(infos, dict)
    theirs.close()


def test_thousands_of_matches_with_statistics():
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


def test_matches_that_are_sent_and_received_by_themselves():
    with make("shoal/Hockey-v0", 4) as envs, make("shoal/Hockey-v0", 4) as all_:
        assert_identical(envs.reset(seed=1), all_.reset(seed=1))
        for _ in range(5):
            actions = all_.action_space.sample()
            expected = all_.step(actions)
            for matches in ([2, 0], [1, 3]):
                slots = envs.slots_of(matches)
                envs.send(actions[slots], slots)
                batch = envs.recv(slots=slots)
                assert_identical(batch.slots, slots)
                assert_identical(batch.observations, expected[0][slots])
                assert_identical(batch.rewards, expected[1][slots])


def test_what_supersuit_cannot_do():
    """Agents that go before others, for one."""
    theirs = concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(Crowd(strict=False)), 2)

    def play():
        theirs.reset(seed=1)
        for _ in range(40):
            theirs.step(np.full(theirs.num_envs, 2))

    with pytest.raises(AssertionError, match="agent death"):
        play()


def test_views_of_the_kernel_need_no_copy():
    with make("shoal/Hockey-v0", 50, copy=False) as envs, shoal.make("shoal/Hockey-v0", 50) as all_:
        assert_identical(envs.reset(seed=1)[0], all_.reset(seed=1)[0].reshape(100, 18))
        actions = np.zeros((100, 4), np.float32)
        addresses = {envs.step(actions)[0].ctypes.data for _ in range(9)}
        assert len(addresses) == 3
