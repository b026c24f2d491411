"""Invalid arguments, actions and environments raise precise errors before any step."""

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
def test_other_environments_are_rejected(make_env, message, backend):
    with pytest.raises(TypeError, match=message):
        make(make_env, 2, backend=backend)


def test_batch_shape_needs_equal_spaces():
    with pytest.raises(SpaceMismatchError, match=r"'ann' has Dict.*'bob' has Box.*shape='dict'"):
        make(partial(Crowd, mixed=True), 2)


def test_invalid_arguments_of_make():
    with pytest.raises(ValueError, match="shape must be 'batch' or 'dict'"):
        make(Crowd, 2, shape="list")
    with pytest.raises(TypeError, match="observation_mode"):
        make(Crowd, 2, observation_mode="different")
    with pytest.raises(TypeError, match="pass the function that creates it"):
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


def test_invalid_actions_in_rows():
    with make(Crowd, 2, backend="inline") as envs:
        envs.reset(seed=0)
        invalid = np.full(6, 2)
        invalid[4] = 6
        with pytest.raises(InvalidActionError, match="slot 4: action is 6") as caught:
            envs.step(invalid)
        assert "agent k % 3" in caught.value.__notes__[0]
        for invalid in (np.full(5, 2), np.full((2, 3), 2), None, np.full(6, 2.5), ["a"] * 6):
            with pytest.raises((InvalidActionError, ActionTypeError)):
                envs.step(invalid)
        with pytest.raises(ResetMaskError, match="whole environments"):
            envs.send([2, 2], [0, 1])
        with pytest.raises(IndexError):
            envs.send([2, 2, 2], [5, 6, 7])
        assert envs.get_attr("time") == (0, 0)


def test_invalid_actions_by_agent():
    with make(partial(Crowd, mixed=True), 2, shape="dict", backend="inline") as envs:
        envs.reset(seed=0)
        valid = {agent: envs.batched_action_space(agent).sample() for agent in AGENTS}
        with pytest.raises(InvalidActionError, match="'bob', which is alive in environment 0"):
            envs.step({agent: valid[agent] for agent in ("ann", "cyd")})
        with pytest.raises(InvalidActionError, match="no agent 'dan'"):
            envs.step({**valid, "dan": 1})
        with pytest.raises(InvalidActionError, match="a dict with a batch for each agent"):
            envs.step(np.zeros(6))
        with pytest.raises(InvalidActionError, match=r"slot 1: action\[0\] is 9") as caught:
            envs.step({**valid, "ann": [2, 9]})
        assert "actions[0] those of 'ann'" in caught.value.__notes__[0]
        with pytest.raises(InvalidActionError, match=r"actions\[1\]: got shape \(3, 2\)"):
            envs.step({**valid, "bob": np.zeros((3, 2), np.float32)})
        with pytest.raises(ResetMaskError, match="shape"):
            envs.reset(options={"reset_mask": np.ones(3, np.bool_)})
        assert envs.get_attr("time") == (0, 0)
    with (
        make(Crowd, 2, shape="dict", backend="inline") as envs,
        pytest.raises(ResetMaskError, match="environment 1 has never been reset"),
    ):
        envs.reset(options={"reset_mask": np.array([True, False])})


class Faulty(Crowd):
    """Environment with one violation of PettingZoo's API."""

    def __init__(self, fault):
        super().__init__(infos=False, strict=False)
        self.fault = fault

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed=seed, options=options)
        if self.fault == "old reset":
            return observations
        if self.fault == "no observation":
            del observations["bob"]
        if self.fault == "unknown agent":
            self.agents.append("dan")
        return observations, infos

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = super().step(actions)
        terminated = truncated = dict.fromkeys(terminated, False)
        self.agents = list(AGENTS)
        if self.fault == "no reward":
            del rewards["ann"]
        if self.fault == "removed agent":
            self.agents.remove("ann")
        if self.fault == "four values":
            return observations, rewards, terminated, infos
        return observations, rewards, terminated, truncated, infos


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("old reset", StepResultError, "reset of a parallel .* must return a tuple of 2 dicts"),
        ("no observation", ObservationError, "agent 'bob' is alive, but has no observation"),
        ("unknown agent", StepResultError, "agent 'dan' is not in possible_agents"),
        ("no reward", StepResultError, "agent 'ann' has acted, but step returned no reward"),
        ("removed agent", StepResultError, "agent 'ann' was removed from env.agents"),
        ("four values", StepResultError, "step of a parallel .* must return a tuple of 5 dicts"),
    ],
)
def test_faulty_environments_raise(fault, error, message):
    def run():
        with make(partial(Faulty, fault), 2, backend="inline") as envs:
            envs.reset(seed=1)
            envs.step(envs.action_space.sample())

    with pytest.raises(error, match=message) as caught:
        run()
    assert any("slot 0 of 2" in note for note in caught.value.__notes__)


def test_episode_of_a_team_ends_with_its_last_agent():
    """It is truncated if at least one agent was truncated, and terminated otherwise."""
    team, kinds = TeamEnv(Crowd(infos=False, strict=False)), set()
    team.reset(seed=1)
    any_truncated = False
    for _ in range(300):
        (_, numbers), reward, terminated, truncated, _ = team.step((2, 3, 4))
        assert reward == numbers[0].sum()
        any_truncated |= bool(numbers[2].any())
        assert (terminated or truncated) == (not numbers[3].any())
        if terminated or truncated:
            assert truncated == any_truncated
            kinds.add(truncated)
            team.reset()
            any_truncated = False
    assert kinds == {True, False}
    team.close()
