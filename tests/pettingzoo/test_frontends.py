"""What else is expected of both shapes: training loops, wrappers, attributes, crashes, closing."""

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


def sampled(envs):
    """Actions of all agents in all environments."""
    if hasattr(envs, "action_space") and not callable(envs.action_space):
        return envs.action_space.sample()
    return {agent: envs.batched_action_space(agent).sample() for agent in envs.possible_agents}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_reset_mask_resets_environments_of_which_all_the_living_are_selected(mode):
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
        with pytest.raises(ResetMaskError, match=r"environment 0 .* not 'bob'"):
            envs.reset(options={"reset_mask": half})
        others, infos = envs.reset(options={"reset_mask": np.arange(6) < 3})
        assert_identical(others["observation"][3:], observations["observation"][3:])
        assert (others["observation"][:2] != observations["observation"][:2]).any()
        assert_identical(infos["_options"], half)
        assert_identical(infos["alive"], envs.alive)
        with pytest.raises(ResetMaskError, match="shape"):
            envs.reset(options={"reset_mask": np.ones(2, np.bool_)})


def test_a_single_file_training_loop():
    """As CleanRL writes it: flags that are carried to the next step, a batch of slots."""
    with make(partial(Crowd, told=False), 4, autoreset_mode="SameStep", statistics=True) as envs:
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


def test_stable_baselines3_trains_on_agents_as_slots():
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


def test_stable_baselines3_sees_each_agents_end():
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


def test_a_door_that_resets_by_itself_is_told_which_mode_to_take():
    vec_env = as_vec_env(make(Crowd, 2))
    vec_env.seed(3)
    vec_env.reset()

    def play():
        for _ in range(40):
            vec_env.step(np.array([vec_env.action_space.sample() for _ in range(6)]))

    with pytest.raises(ResetMaskError, match="SameStep"):
        play()
    vec_env.close()


def test_vector_wrappers():
    """The returns that a wrapper adds up from outside are those that the vector reports."""
    inner = make(partial(Crowd, told=False), 3, autoreset_mode="SameStep")
    envs = NormalizeReward(RecordEpisodeStatistics(inner))
    twin = make(partial(Crowd, told=False), 3, autoreset_mode="SameStep", statistics=True)
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
def test_statistics_are_of_agents(shape):
    with make(Crowd, 3, shape=shape, backend="process", workers=2, statistics=True) as envs:
        envs.reset(seed=1)
        returns, lengths, ended = np.zeros(9), np.zeros(9, int), 0
        for _ in range(60):
            alive = rows(envs.alive)
            got = envs.step(sampled(envs))
            _, rewards, terminated, truncated = map(rows, (0, *got[1:4]))
            returns += rewards
            lengths += alive
            for agent, infos in [(None, got[4])] if shape == "batch" else got[4].items():
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
    """What is told by agent, in the order of slots."""
    return np.stack(list(columns.values()), 1).ravel() if isinstance(columns, dict) else columns


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_crash_truncates_the_living_and_costs_one_episode(shape, mode):
    factories = [partial(Exploding, at) for at in (5, 10_000)]
    options = {"backend": "process", "workers": 2, "on_crash": "restart"}
    with make(factories, shape=shape, autoreset_mode=mode, **options) as envs:
        envs.reset(seed=1)
        for _ in range(60):
            alive = rows(envs.alive)
            got = envs.step(sampled(envs))
            infos = got[4] if shape == "batch" else got[4]["ann"]
            if "crashed" in infos:
                break
        truncated = rows(got[3])
        assert_identical(truncated[:3], alive[:3])
        assert not rows(got[1])[:3].any()
        assert not rows(got[2])[:3].any()
        assert rows(envs.alive)[:2].all()
        mask = infos["_crashed"]
        assert mask[0]
        assert not mask[-1]
        envs.step(sampled(envs))


def test_attributes_and_pictures_are_those_of_environments():
    for shape in SHAPES:
        with make(partial(Crowd, told=False), 2, shape=shape, wrappers=[Renamed]) as envs:
            envs.reset(seed=1)
            assert envs.get_attr("limit") == (12, 12)
            envs.set_attr("limit", [2, 3])
            assert envs.get_attr("limit") == (2, 3)
            assert envs.call("told_limit") == ("limit 2", "limit 3")
            assert [picture.shape for picture in envs.render()] == [(2, 2, 3)] * 2
            assert envs.render_mode == "rgb_array"
            for _ in range(2):
                envs.step(sampled(envs))
            assert not rows(envs.alive)[:3].any()


class Renamed(BaseParallelWrapper):
    """A wrapper of PettingZoo's kind."""

    def told_limit(self):
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
    """The same spaces, other agents."""

    def __init__(self, made):
        super().__init__()
        self.possible_agents = ["bob", "ann", "cyd"]
        made.append(self)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_agent_is_enough(shape):
    class Alone(Crowd):
        def __init__(self):
            super().__init__(told=False, strict=False)
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
            envs.step(sampled(envs))


def test_an_agent_that_is_nowhere_may_be_left_out():
    with make(partial(Crowd, mixed=True), 1, shape="dict") as envs:
        envs.reset(seed=1)
        seen = set()
        for _ in range(40):
            seen.add(tuple(envs.agents))
            envs.step({agent: envs.batched_action_space(agent).sample() for agent in envs.agents})
        assert len(seen) > 3


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_told_of_no_agent_is_told_to_all(shape):
    with make(partial(Crowd, told="together"), 2, shape=shape, info_format="list") as envs:
        envs.reset(seed=1)
        infos = envs.step(sampled(envs))[4]
        listed = infos if shape == "batch" else [info for each in infos.values() for info in each]
        assert [info["weather"] for info in listed] == [{"wind": 1}] * 6


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_size_counts_environments(shape):
    with make(Crowd, 4, shape=shape, backend="thread", workers=2, batch_size=2) as envs:
        envs.reset(seed=1)
        assert envs.plan.caller_slots == 0
        envs.send(sampled(envs))
        for _ in range(2):
            assert len(envs.recv().slots) == (6 if shape == "batch" else 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_infos_as_they_were_before_gymnasium_1_0(shape):
    with make(
        "shoal/Hockey-v0", 2, shape=shape, mode="TRAIN_SHOOTING", info_format="pre-1.0"
    ) as envs:
        assert envs.autoreset_mode is AutoresetMode.SAME_STEP
        envs.reset(seed=1)
        for _ in range(81):
            infos = envs.step(sampled(envs))[4]
            infos = infos if shape == "batch" else infos["player_2"]
            if "final_observation" in infos:
                assert infos["final_observation"][int(np.argmax(infos["_final_info"]))].shape == (
                    18,
                )
                break
        else:
            pytest.fail("no match has ended")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_worker_outlives_a_vector_that_was_forgotten(shape):
    envs = make(Crowd, 2, shape=shape, backend="process", workers=1, caller_works=False)
    pids = envs.call("pid")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del envs
    for pid in set(pids):
        assert ended(pid)


def ended(pid, patience=5.0):
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False


def test_pettingzoo_is_needed_for_its_interface_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "shoal.pettingzoo.hockey_v0")
    with make("shoal/Hockey-v0", 2) as envs:
        envs.reset()
    with pytest.raises(MissingExtraError, match="shoal\\[pettingzoo\\]"):
        make("shoal/Hockey-v0", 2, backend="inline")


def test_spaces_are_batched():
    with make(Crowd, 2) as envs:
        assert envs.single_action_space == spaces.Discrete(4, start=2)
        assert envs.action_space == spaces.MultiDiscrete([4] * 6, start=[2] * 6)
        assert envs.agents == tuple(AGENTS)
        assert isinstance(envs, shoal.vector.VectorEnv)
    with make(partial(Crowd, mixed=True), 2, shape="dict") as envs:
        assert envs.action_space("bob") is envs.action_space("bob")
        assert envs.batched_action_space("bob").shape == (2, 2)
        assert envs.batched_observation_space("bob").shape == (2, 2, 2)
