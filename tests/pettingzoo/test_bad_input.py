"""What is wrong is said precisely, before anything happens."""

from functools import partial

import gymnasium
import numpy as np
import pettingzoo
import pytest

from shoal.errors import (
    ActionTypeError,
    InvalidActionError,
    ObservationError,
    ResetMaskError,
    SpaceMismatchError,
    StepResultError,
)
from shoal.pettingzoo import make
from shoal.pettingzoo._team_env import TeamEnv
from tests.pettingzoo.environments import AGENTS, Crowd


@pytest.mark.parametrize(
    ("make_env", "message"),
    [
        (partial(pettingzoo.make, "aec", "classic/tictactoe-v3"), "aec_to_parallel"),
        (partial(gymnasium.make, "CartPole-v1"), r"shoal\.make"),
        (dict, "without"),
    ],
)
@pytest.mark.parametrize("backend", ["inline", "auto"])
def test_what_is_no_parallel_environment_is_refused(make_env, message, backend):
    with pytest.raises(TypeError, match=message):
        make(make_env, 2, backend=backend)


def test_agents_with_different_spaces_have_no_common_batch():
    with pytest.raises(SpaceMismatchError, match=r"'ann' has Dict.*'bob' has Box.*shape='dict'"):
        make(partial(Crowd, mixed=True), 2)


def test_wrong_arguments_of_make():
    with pytest.raises(ValueError, match="shape must be 'batch' or 'dict'"):
        make(Crowd, 2, shape="list")
    with pytest.raises(TypeError, match="observation_mode"):
        make(Crowd, 2, observation_mode="different")
    with pytest.raises(TypeError, match="give the function that makes it"):
        make(Crowd(), 2)
    with pytest.raises(TypeError, match="limit"):
        make([Crowd], limit=3)
    with pytest.raises(ValueError, match="num_envs is 3"):
        make([Crowd], 3)
    with pytest.raises(ValueError, match="backend must be one of"):
        make(Crowd, 3, backend="magic")
    with pytest.raises(TypeError, match="unexpected"):
        make(Crowd, 3, backend="inline", unexpected=1)
    with make(Crowd, 1, limit=3) as envs:
        assert envs.get_attr("limit") == (3,)


def test_wrong_actions_in_rows():
    with make(Crowd, 2, backend="inline") as envs:
        envs.reset(seed=0)
        wrong = np.full(6, 2)
        wrong[4] = 6
        with pytest.raises(InvalidActionError, match="slot 4: action is 6") as caught:
            envs.step(wrong)
        assert "agent k % 3" in caught.value.__notes__[0]
        for wrong in (np.full(5, 2), np.full((2, 3), 2), None, np.full(6, 2.5), ["a"] * 6):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                envs.step(wrong)
        with pytest.raises(ResetMaskError, match="whole environments"):
            envs.send([2, 2], [0, 1])
        with pytest.raises(IndexError):
            envs.send([2, 2, 2], [5, 6, 7])
        assert envs.get_attr("time") == (0, 0)


def test_wrong_actions_by_agent():
    with make(partial(Crowd, mixed=True), 2, shape="dict", backend="inline") as envs:
        envs.reset(seed=0)
        good = {agent: envs.batched_action_space(agent).sample() for agent in AGENTS}
        with pytest.raises(InvalidActionError, match="'bob', which is alive in environment 0"):
            envs.step({agent: good[agent] for agent in ("ann", "cyd")})
        with pytest.raises(InvalidActionError, match="no agent 'dan'"):
            envs.step({**good, "dan": 1})
        with pytest.raises(InvalidActionError, match="a dict with a batch for each agent"):
            envs.step(np.zeros(6))
        with pytest.raises(InvalidActionError, match=r"slot 1: action\[0\] is 9") as caught:
            envs.step({**good, "ann": [2, 9]})
        assert "actions[0] those of 'ann'" in caught.value.__notes__[0]
        with pytest.raises(InvalidActionError, match=r"actions\[1\]: got shape \(3, 2\)"):
            envs.step({**good, "bob": np.zeros((3, 2), np.float32)})
        with pytest.raises(ResetMaskError, match="shape"):
            envs.reset(options={"reset_mask": np.ones(3, np.bool_)})
        assert envs.get_attr("time") == (0, 0)
    with (
        make(Crowd, 2, shape="dict", backend="inline") as envs,
        pytest.raises(ResetMaskError, match="environment 1 has never been reset"),
    ):
        envs.reset(options={"reset_mask": np.array([True, False])})


class Sloppy(Crowd):
    """Gets one thing wrong."""

    def __init__(self, fault):
        super().__init__(told=False, strict=False)
        self.fault = fault

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed=seed, options=options)
        if self.fault == "old":
            return observations
        if self.fault == "unseen":
            del observations["bob"]
        if self.fault == "unknown":
            self.agents.append("dan")
        return observations, infos

    def step(self, actions):
        observations, rewards, dies, cuts, infos = super().step(actions)
        dies, cuts = dict.fromkeys(dies, False), dict.fromkeys(cuts, False)
        self.agents = list(AGENTS)
        if self.fault == "silent":
            del rewards["ann"]
        if self.fault == "gone":
            self.agents.remove("ann")
        if self.fault == "four":
            return observations, rewards, dies, infos
        return observations, rewards, dies, cuts, infos


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("old", StepResultError, "reset of a parallel environment returns a tuple of 2 dicts"),
        ("unseen", ObservationError, "agent 'bob' lives, but no observation"),
        ("unknown", StepResultError, "agent 'dan' is none of the possible agents"),
        ("silent", StepResultError, "agent 'ann' has acted, but step has returned no reward"),
        ("gone", StepResultError, "agent 'ann' is not among env.agents any more"),
        ("four", StepResultError, "step of a parallel environment returns a tuple of 5 dicts"),
    ],
)
def test_environments_that_break_the_rules_are_told_which(fault, error, message):
    def run():
        with make(partial(Sloppy, fault), 2, backend="inline") as envs:
            envs.reset(seed=1)
            envs.step(envs.action_space.sample())

    with pytest.raises(error, match=message) as caught:
        run()
    assert any("slot 0 of 2" in note for note in caught.value.__notes__)


def test_a_team_ends_with_its_last_agent():
    """Terminated where every agent was; where one of them was cut off, so was the whole."""
    team, kinds = TeamEnv(Crowd(told=False, strict=False)), set()
    team.reset(seed=1)
    cut = False
    for _ in range(300):
        (_, numbers), reward, terminated, truncated, _ = team.step((2, 3, 4))
        assert reward == numbers[0].sum()
        cut |= bool(numbers[2].any())
        assert (terminated or truncated) == (not numbers[3].any())
        if terminated or truncated:
            assert truncated == cut
            kinds.add(truncated)
            team.reset()
            cut = False
    assert kinds == {True, False}
    team.close()
