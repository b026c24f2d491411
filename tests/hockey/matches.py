"""Vectors of matches between scripted players."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import shoal
from shoal.hockey import BasicOpponents


@dataclass
class Results:
    """The results of matches, as rates for player 1, and their lengths."""

    win: float
    draw: float
    loss: float
    mean_length: float


class Player:
    """A player of the recording, by name, for every match."""

    def __init__(self, kind: str, count: int, seed: int) -> None:
        self._kind, self._count = kind, count
        self._random = np.random.default_rng(seed)
        self._scripted = BasicOpponents(count, kind == "weak", seed)

    def act(self, observations: np.ndarray, out: np.ndarray) -> None:
        if self._kind == "none":
            out[...] = 0.0
        elif self._kind == "random":
            out[...] = self._random.uniform(-1, 1, out.shape)
        else:
            self._scripted.act(observations, out=out)


def play(mode: str, first: str, second: str, games: int, seed: int) -> Results:
    """Play this number of matches; each player starts half of them."""
    players = Player(first, games, seed), Player(second, games, seed + 1)
    winners, lengths = np.zeros(games), np.zeros(games)
    ended = np.zeros(games, bool)
    mask = np.arange(games) % 2 == 0
    actions = np.empty((games, 8), np.float32)
    with shoal.make("shoal/Hockey-v0", games, mode=mode) as envs:
        envs.reset(seed=seed, options={"one_starting": True})
        observations, _ = envs.reset(options={"one_starting": False, "reset_mask": mask})
        while not ended.all():
            players[0].act(observations[:, 0], actions[:, :4])
            players[1].act(observations[:, 1], actions[:, 4:])
            observations, _, terminated, truncated, infos = envs.step(actions)
            lengths += ~ended
            ends = ~ended & (terminated | truncated)
            winners[ends] = infos["winner"][ends, 0]
            ended |= ends
    return Results(
        *(float(np.mean(winners == winner)) for winner in (1, 0, -1)), float(lengths.mean())
    )
