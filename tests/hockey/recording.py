"""The recording of the reference environment, and its transitions repeated by the kernel."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import shoal

DATA = Path(__file__).parent / "data"

_REACH = 0.4473  # the distance of a racket's farthest corner from its origin
_PUCK_RADIUS = 13 / 60
_MARGIN = 0.03
_CORNERS = 0.02 * np.array(
    [(-10, 20), (5, 20), (5, -20), (-10, -20), (-18, -10), (-21, 0), (-18, 10)]
)


@cache
def recording() -> SimpleNamespace:
    """Load the recording, without first steps whose initial shot is not in the observation."""
    with np.load(DATA / "hockey_golden.npz") as fields:
        unseen = (fields["mode"] == 2) & (fields["t"] == 0)
        return SimpleNamespace(**{name: fields[name][~unseen] for name in fields})


@cache
def repeated() -> SimpleNamespace:
    """Compute each transition of the recording separately with the kernel."""
    gold = recording()
    # If a puck touches a racket in consecutive steps, only the first one is a new touch.
    _, _, touching = _step(np.zeros(len(gold.t), np.uint8))
    follows = np.r_[False, (np.diff(gold.t) == 1) & (np.diff(gold.episode) == 0)]
    observations, results, _ = _step(np.where(follows, np.r_[0, touching[:-1]], 0))
    rewards, terminated, truncated, infos = results
    return SimpleNamespace(
        next_obs=observations[:, 0].astype(np.float64),
        next_obs_two=observations[:, 1].astype(np.float64),
        reward=rewards,
        terminated=terminated,
        truncated=truncated,
        **infos,
    )


def _step(touching):
    gold = recording()
    with shoal.make("shoal/Hockey-v0", len(gold.t)) as envs:
        envs.set_attr("mode", [int(mode) for mode in gold.mode])
        envs.reset(seed=0)
        envs.state["observation"] = gold.obs
        envs.state["puck_spin"] = gold.puck_spin
        envs.state["touching"] = touching
        envs.state["time"] = gold.t
        envs.state["shot"] = 0.0
        observations, *results = envs.step(gold.action)
        return observations, results, envs.state["touching"].copy()


def racket(observations: np.ndarray, player: int) -> np.ndarray:
    """Return x, y, angle, velocity and spin of a player's racket."""
    return observations[:, 6 * player : 6 * player + 6]


def puck(observations: np.ndarray) -> np.ndarray:
    """Return x, y and velocity of the puck."""
    return observations[:, 12:16]


def is_racket_free(observations: np.ndarray, player: int) -> np.ndarray:
    """Whether a racket is clear of walls, of the other racket and of the puck."""
    x, y, angle = racket(observations, player)[:, :3].T
    corners = _CORNERS * (1 if player == 0 else [-1, 1])
    sine, cosine = np.sin(angle)[:, None], np.cos(angle)[:, None]
    across = np.abs(x[:, None] + cosine * corners[:, 0] - sine * corners[:, 1]).max(1)
    up = np.abs(y[:, None] + sine * corners[:, 0] + cosine * corners[:, 1]).max(1)
    inside = (across < 235 / 60 - _MARGIN) & (up < 200 / 60 - _MARGIN)
    inside |= (across < 245 / 60 - _MARGIN) & (up < 75 / 60)  # between the posts of a goal
    return inside & ~are_rackets_near(observations) & ~is_puck_near(observations, player)


def are_rackets_near(observations: np.ndarray) -> np.ndarray:
    """Whether rackets may touch each other."""
    apart = racket(observations, 0)[:, :2] - racket(observations, 1)[:, :2]
    return np.hypot(*apart.T) < 2 * _REACH + _MARGIN


def is_puck_near(observations: np.ndarray, player: int) -> np.ndarray:
    """Whether the puck may touch a racket."""
    apart = puck(observations)[:, :2] - racket(observations, player)[:, :2]
    return np.hypot(*apart.T) < _REACH + _PUCK_RADIUS + _MARGIN


def is_puck_near_wall(observations: np.ndarray) -> np.ndarray:
    """Whether the puck may touch a wall in this or the next step."""
    position, velocity = puck(observations)[:, :2].T, puck(observations)[:, 2:].T
    x, y = np.maximum(np.abs(position), np.abs(position + 0.02 * velocity))
    return (x > 235 / 60 - _PUCK_RADIUS - _MARGIN) | (y > 200 / 60 - _PUCK_RADIUS - _MARGIN)
