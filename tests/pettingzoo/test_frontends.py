"""Both shapes: reset masks, training loops, wrappers, attributes, statistics, crashes, closing."""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from pettingzoo.utils import BaseParallelWrapper
from stable_baselines3 import PPO

import shoal
from shoal.errors import MissingExtraError, ResetMaskError, SpaceMismatchError
from shoal.pettingzoo import hockey_v0, make
from shoal.sb3 import as_vec_env
from shoal.testing import assert_identical
from shoal.vector.wrappers import NormalizeReward, RecordEpisodeStatistics
from tests.pettingzoo.environments import AGENTS, Crowd, Exploding

SHAPES = ["batch", "dict"]


def sample_actions(envs):
    """Sample actions of all agents in all environments."""
    if hasattr(envs, "action_space") and not callable(envs.action_space):
        return envs.action_space.sample()
    return {agent: envs.batched_action_space(agent).sample() for agent in envs.possible_agents}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_reset_mask_must_select_all_living_agents(mode):
    with make(Crowd, 2, autoreset_mode=mode) as envs:
        with pytest.raises(ResetMaskError, match="never been reset"):
            envs.reset(options={"reset_mask": np.arange(6) < 3})
        envs.reset(seed=4)
        while envs.alive.reshape(2, 3).sum(axis=1).tolist() != [3, 2]:
            envs.step(envs.action_space.sample())
            if not envs.alive.any():
                envs.reset()
        dead = int(np.argmin(envs.alive))
        before = envs.alive
        mask = np.arange(6) == dead
        observations, infos = envs.reset(options={"reset_mask": mask})
        assert_identical(infos, {"alive": before, "_alive": np.ones(6, np.bool_)})
        half = np.arange(6) == 0
        with pytest.raises(ResetMaskError, match=r"environment 0, but not 'bob'"):
            envs.reset(options={"reset_mask": half})
        others, infos = envs.reset(options={"reset_mask": np.arange(6) < 3})
        assert_identical(others["observation"][3:], observations["observation"][3:])
        assert (others["observation"][:2] != observations["observation"][:2]).any()
        assert_identical(infos["_options"], half)
        assert_identical(infos["alive"], envs.alive)
        with pytest.raises(ResetMaskError, match="shape"):
            envs.reset(options={"reset_mask": np.ones(2, np.bool_)})


def test_cleanrl_style_training_loop():
    with make(partial(Crowd, infos=False), 4, autoreset_mode="SameStep", statistics=True) as envs:
        envs.reset(seed=1)
        done, returns, reported = np.zeros(12), np.zeros(12), []
        for _ in range(100):
            alive = envs.alive
            _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
            assert not (terminated | truncated)[~alive].any()
            assert not rewards[~alive].any()
            returns = returns * (1 - done) + rewards
            done = (terminated | truncated).astype(float)
            if "episode" in infos:
                assert_identical(infos["_episode"], done > 0)
                reported.extend(infos["episode"]["r"][infos["_episode"]] - returns[done > 0])
        assert len(reported) > 20
        assert not any(reported)


def test_stable_baselines3_trains():
    envs = make(
        hockey_v0.parallel_env, 4, discrete=True, autoreset_mode="SameStep", statistics=True
    )
    vec_env = as_vec_env(envs)
    model = PPO("MlpPolicy", vec_env, n_steps=64, batch_size=128, n_epochs=1, device="cpu", seed=0)
    model.learn(512)
    assert vec_env.num_envs == 8
    assert model.num_timesteps == 512
    vec_env.close()
    assert envs.closed


def test_stable_baselines3_receives_terminal_observations_of_agents():
    vec_env = as_vec_env(make(Crowd, 2, autoreset_mode="SameStep"))
    vec_env.seed(3)
    vec_env.reset()
    ends = 0
    for _ in range(40):
        actions = np.array([vec_env.action_space.sample() for _ in range(6)])
        _, _, dones, infos = vec_env.step(actions)
        for row in np.flatnonzero(dones):
            assert infos[row]["terminal_observation"] in vec_env.observation_space
            ends += 1
    assert ends
    assert vec_env.get_attr("limit") == [12] * 6
    vec_env.close()


def test_stable_baselines3_with_next_step_mode_raises():
    vec_env = as_vec_env(make(Crowd, 2))
    vec_env.seed(3)
    vec_env.reset()

    def play():
        for _ in range(40):
            vec_env.step(np.array([vec_env.action_space.sample() for _ in range(6)]))

    with pytest.raises(ResetMaskError, match="SameStep"):
        play()
    vec_env.close()


def test_statistics_equal_those_of_the_wrapper():
    inner = make(partial(Crowd, infos=False), 3, autoreset_mode="SameStep")
    envs = NormalizeReward(RecordEpisodeStatistics(inner))
    twin = make(partial(Crowd, infos=False), 3, autoreset_mode="SameStep", statistics=True)
    with inner, twin:
        assert_identical(envs.reset(seed=2)[0], twin.reset(seed=2)[0])
        for step in range(60):
            twin.action_space.seed(step)
            actions = twin.action_space.sample()
            infos, expected = envs.step(actions)[4], twin.step(actions)[4]
            assert ("episode" in infos) == ("episode" in expected)
            if "episode" in infos:
                assert_identical(infos["_episode"], expected["_episode"])
                assert_identical(infos["episode"]["r"], expected["episode"]["r"])


@pytest.mark.parametrize("shape", SHAPES)
def test_statistics_of_agents(shape):
    with make(Crowd, 3, shape=shape, backend="process", workers=2, statistics=True) as envs:
        envs.reset(seed=1)
        returns, lengths, ended = np.zeros(9), np.zeros(9, int), 0
        for _ in range(60):
            alive = rows(envs.alive)
            results = envs.step(sample_actions(envs))
            _, rewards, terminated, truncated = map(rows, (0, *results[1:4]))
            returns += rewards
            lengths += alive
            for agent, infos in [(None, results[4])] if shape == "batch" else results[4].items():
                if "episode" in infos:
                    mask = infos["_episode"]
                    place = slice(None) if agent is None else slice(AGENTS.index(agent), None, 3)
                    assert_identical(mask, (terminated | truncated)[place])
                    assert_identical(infos["episode"]["r"][mask], returns[place][mask])
                    assert_identical(infos["episode"]["l"][mask], lengths[place][mask])
                    assert (infos["episode"]["t"][mask] > 0).all()
                    ended += mask.sum()
            over = terminated | truncated
            returns[over] = lengths[over] = 0
        assert ended > 10


def rows(columns):
    """Return values by agent in the order of slots."""
    return np.stack(list(columns.values()), 1).ravel() if isinstance(columns, dict) else columns


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_crash_truncates_living_agents_and_restarts(shape, mode):
    factories = [partial(Exploding, at) for at in (5, 10_000)]
    options = {"backend": "process", "workers": 2, "on_crash": "restart"}
    with make(factories, shape=shape, autoreset_mode=mode, **options) as envs:
        envs.reset(seed=1)
        for _ in range(60):
            alive = rows(envs.alive)
            results = envs.step(sample_actions(envs))
            infos = results[4] if shape == "batch" else results[4]["ann"]
            if "crashed" in infos:
                break
        truncated = rows(results[3])
        assert_identical(truncated[:3], alive[:3])
        assert not rows(results[1])[:3].any()
        assert not rows(results[2])[:3].any()
        assert rows(envs.alive)[:2].all()
        mask = infos["_crashed"]
        assert mask[0]
        assert not mask[-1]
        envs.step(sample_actions(envs))


def test_attributes_and_rendering_apply_to_environments():
    for shape in SHAPES:
        with make(partial(Crowd, infos=False), 2, shape=shape, wrappers=[LimitWrapper]) as envs:
            envs.reset(seed=1)
            assert envs.get_attr("limit") == (12, 12)
            envs.set_attr("limit", [2, 3])
            assert envs.get_attr("limit") == (2, 3)
            assert envs.call("limit_text") == ("limit 2", "limit 3")
            assert [image.shape for image in envs.render()] == [(2, 2, 3)] * 2
            assert envs.render_mode == "rgb_array"
            for _ in range(2):
                envs.step(sample_actions(envs))
            assert not rows(envs.alive)[:3].any()


class LimitWrapper(BaseParallelWrapper):
    """A PettingZoo wrapper with a method."""

    def limit_text(self):
        return f"limit {self.env.unwrapped.limit}"


@pytest.mark.parametrize("shape", SHAPES)
def test_closing_closes_environments_once(shape):
    made = []

    def make_env():
        made.append(Crowd())
        return made[-1]

    envs = make(make_env, 2, shape=shape, backend="inline")
    envs.reset()
    envs.close()
    envs.close()
    assert [env.closed for env in made] == [1, 1]
    with pytest.raises(ClosedEnvironmentError):
        envs.reset()
    made.clear()
    with pytest.raises(SpaceMismatchError):
        make([make_env, partial(Swapped, made)], shape=shape, backend="inline")
    assert [env.closed for env in made] == [1, 1]
    made.clear()
    make(make_env, 2, shape=shape, backend="inline")
    assert [env.closed for env in made] == [1, 1]  # garbage


class Swapped(Crowd):
    """Environment with the same spaces, but another order of agents."""

    def __init__(self, made):
        super().__init__()
        self.possible_agents = ["bob", "ann", "cyd"]
        made.append(self)


@pytest.mark.parametrize("shape", SHAPES)
def test_environment_with_one_agent(shape):
    class Alone(Crowd):
        def __init__(self):
            super().__init__(infos=False, strict=False)
            self.possible_agents = ["ann"]

        def reset(self, seed=None, options=None):
            observations, infos = super().reset(seed, options)
            self.agents = ["ann"]
            return {"ann": observations["ann"]}, {"ann": infos["ann"]}

        def step(self, actions):
            results = super().step(actions)
            self.agents = [agent for agent in self.agents if agent == "ann"]
            return results

    with make(Alone, 2, shape=shape) as envs:
        envs.reset(seed=1)
        for _ in range(30):
            envs.step(sample_actions(envs))


def test_agents_that_cannot_act_may_be_omitted():
    with make(partial(Crowd, mixed=True), 1, shape="dict") as envs:
        envs.reset(seed=1)
        combinations = set()
        for _ in range(40):
            combinations.add(tuple(envs.agents))
            envs.step({agent: envs.batched_action_space(agent).sample() for agent in envs.agents})
        assert len(combinations) > 3


@pytest.mark.parametrize("shape", SHAPES)
def test_infos_of_no_agent_are_copied_to_all_agents(shape):
    with make(partial(Crowd, infos="common"), 2, shape=shape, info_format="list") as envs:
        envs.reset(seed=1)
        infos = envs.step(sample_actions(envs))[4]
        listed = infos if shape == "batch" else [info for each in infos.values() for info in each]
        assert [info["weather"] for info in listed] == [{"wind": 1}] * 6


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_size_counts_environments(shape):
    with make(Crowd, 4, shape=shape, backend="thread", workers=2, batch_size=2) as envs:
        envs.reset(seed=1)
        assert envs.plan.caller_slots == 0
        envs.send(sample_actions(envs))
        for _ in range(2):
            assert len(envs.recv().slots) == (6 if shape == "batch" else 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_info_format_before_gymnasium_1_0(shape):
    with make(
        "shoal/Hockey-v0", 2, shape=shape, mode="TRAIN_SHOOTING", info_format="pre-1.0"
    ) as envs:
        assert envs.autoreset_mode is AutoresetMode.SAME_STEP
        envs.reset(seed=1)
        for _ in range(81):
            infos = envs.step(sample_actions(envs))[4]
            infos = infos if shape == "batch" else infos["player_2"]
            if "final_observation" in infos:
                assert infos["final_observation"][int(np.argmax(infos["_final_info"]))].shape == (
                    18,
                )
                break
        else:
            pytest.fail("no match has ended")


@pytest.mark.parametrize("shape", SHAPES)
def test_workers_end_when_the_vector_is_garbage_collected(shape):
    envs = make(Crowd, 2, shape=shape, backend="process", workers=1, caller_works=False)
    pids = envs.call("pid")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del envs
    for pid in set(pids):
        assert has_ended(pid)


def has_ended(pid, timeout=5.0):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False


def test_kernel_does_not_need_pettingzoo(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "shoal.pettingzoo.hockey_v0")
    with make("shoal/Hockey-v0", 2) as envs:
        envs.reset()
    with pytest.raises(MissingExtraError, match="shoal\\[pettingzoo\\]"):
        make("shoal/Hockey-v0", 2, backend="inline")


def test_spaces():
    with make(Crowd, 2) as envs:
        assert envs.single_action_space == spaces.Discrete(4, start=2)
        assert envs.action_space == spaces.MultiDiscrete([4] * 6, start=[2] * 6)
        assert envs.agents == tuple(AGENTS)
        assert isinstance(envs, shoal.vector.VectorEnv)
    with make(partial(Crowd, mixed=True), 2, shape="dict") as envs:
        assert envs.action_space("bob") is envs.action_space("bob")
        assert envs.batched_action_space("bob").shape == (2, 2)
        assert envs.batched_observation_space("bob").shape == (2, 2, 2)
