"""Vectors, policies and reference rollouts for the tests of this folder."""

import copy
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.vector.wrappers import VectorWrapper
from tests.random_environments import RandomEnv

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

PARTS = spaces.Dict(
    place=spaces.Box(-1, 1, (2, 3), np.float32),
    kind=spaces.Discrete(5, start=2),
    more=spaces.Tuple((spaces.MultiBinary(3), spaces.Dict(level=spaces.Box(0, 255, (), np.uint8)))),
)
SLOTS, STEPS, SEED = 3, 40, 7
DISABLED = AutoresetMode.DISABLED


def random_envs(observed=PARTS, actions=None, with_infos=False):
    actions = spaces.Discrete(2) if actions is None else actions
    return [partial(RandomEnv, observed, actions, with_infos=with_infos)] * SLOTS


VECTORS = {
    "kernel": lambda mode: shoal.make("CartPole-v1", SLOTS, autoreset_mode=mode),
    "inline": lambda mode: shoal.make(random_envs(), backend="inline", autoreset_mode=mode),
    "views": lambda mode: shoal.make(
        random_envs(), backend="thread", copy=False, autoreset_mode=mode
    ),
    "processes": lambda mode: shoal.make(
        random_envs(), backend="process", start="fork", autoreset_mode=mode
    ),
    "wrapped": lambda mode: VectorWrapper(
        shoal.make(random_envs(), backend="inline", autoreset_mode=mode)
    ),
    "gymnasium": lambda mode: gymnasium.vector.SyncVectorEnv(random_envs(), autoreset_mode=mode),
    "gymnasium views": lambda mode: gymnasium.vector.SyncVectorEnv(
        random_envs(), autoreset_mode=mode, copy=False
    ),
}


def random_actions(steps=STEPS):
    return np.random.default_rng(SEED).integers(2, size=(steps, SLOTS))


def scripted(actions):
    """Return a policy that returns the given actions in turn."""
    remaining = iter(torch.as_tensor(actions))

    def policy(tensordict):
        return tensordict.set("action", next(remaining))

    return policy


def plain_rollout(vector, choose, steps=STEPS):
    """Step a vector and reset finished slots explicitly; return one row per step.

    ``choose`` is called with the observations and the number of the step, and returns the actions.
    """
    rows = []
    observations, _ = vector.reset(seed=SEED)
    for step in range(steps):
        after, rewards, terminated, truncated, _ = vector.step(choose(observations, step))
        flags = terminated[:, None], truncated[:, None]
        row = observations, after, rewards[:, None].astype(np.float32), *flags, flags[0] | flags[1]
        rows.append(copy.deepcopy(row))
        observations, ended = after, terminated | truncated
        if ended.any():
            observations, _ = vector.reset(options={"reset_mask": ended})
    vector.close()
    return rows


def vector_observations(tensordict):
    """Convert a tensordict with categorical encoding to the observations of a vector."""
    if "observation" in tensordict:
        return tensordict["observation"].numpy()
    return {
        "place": tensordict["place"].numpy(),
        "kind": tensordict["kind"].numpy() + 2,
        "more": (
            tensordict["more", "0"].numpy(),
            {"level": tensordict["more", "1", "level"].numpy()[..., 0]},
        ),
    }


def rows_of(rollout):
    """Convert a rollout to the format of ``plain_rollout``."""
    flags = "terminated", "truncated", "done"
    return [
        (
            vector_observations(step),
            vector_observations(step["next"]),
            *(step["next", key].numpy() for key in ("reward", *flags)),
        )
        for step in rollout.unbind(1)
    ]


def without_text(env):
    return gymnasium.wrappers.FilterObservation(env, ["vector", "inner"])
