"""Laser hockey as a PettingZoo environment: one match with both players as agents.

    >>> from shoal.pettingzoo import hockey_v0
    >>> env = hockey_v0.parallel_env(render_mode="rgb_array")
    >>> observations, infos = env.reset(seed=1)
    >>> observations["player_2"].shape
    (18,)
    >>> env.close()

Each player observes the match as if it played from left to right. See :mod:`shoal.hockey` for
observations, actions and rewards. A match ends for both players at once: it is terminated by a goal
and truncated after 251 steps. ``shoal.pettingzoo.make(parallel_env, 4096)`` steps thousands of
matches directly in the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces

from shoal._envs.hockey.kernels import METADATA, SEEN, make_kernel
from shoal._envs.hockey.values import Mode
from shoal._envs.single_env import KernelEnv
from shoal.errors import InvalidActionError, MissingExtraError, SlotFinishedError
from shoal.pettingzoo._hockey_ids import replaceable_by_kernel
from shoal.pettingzoo._hockey_teams import PLAYERS, player_members

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError as error:
    raise MissingExtraError(
        'PettingZoo is not installed: pip install "shoal[pettingzoo]"'
    ) from error

__all__ = ["HockeyMatch", "env", "parallel_env", "raw_env"]

Observations = dict[str, npt.NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]

_OPTIONS = ("mode", "one_starting")


class HockeyMatch(ParallelEnv):  # type: ignore[misc]
    """One match between ``player_1`` and ``player_2``.

    Args:
        discrete: Whether an action is one of 8 choices instead of 4 numbers from -1 to 1.
        mode: A :class:`shoal.hockey.Mode`, its name or its number.
        keep_mode: Whether a racket can hold a caught puck and shoot it. Otherwise actions have no
            component for shooting.
        opponent: ``"weak"`` or ``"strong"``: a scripted player replaces ``player_2``, whose actions
            are ignored.
        render_mode: ``"rgb_array"``, ``"human"`` for a window (requires pygame), or None.
    """

    metadata = {**METADATA, "name": "hockey_v0", "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        discrete: bool = False,
        mode: Mode | str | int = Mode.NORMAL,
        keep_mode: bool = True,
        opponent: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        kernel = make_kernel(
            2, discrete=discrete, mode=mode, keep_mode=keep_mode, opponent=opponent
        )
        self._env = KernelEnv(kernel, render_mode)
        self.render_mode = render_mode
        members = player_members(kernel.action_space)
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        self._observation_spaces = dict(zip(PLAYERS, members.observation_spaces, strict=True))
        self._action_spaces = dict(zip(PLAYERS, members.action_spaces, strict=True))
        self.state_space = spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)
        self._observations = np.zeros((len(PLAYERS), SEEN), np.float32)

    def observation_space(self, agent: str) -> Space[Any]:
        """Return the observation space of a player; always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """Return the action space of a player; always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start a match.

        Args:
            seed: The seed of the match.
            options: ``mode`` for this match, and ``one_starting``. Other options are ignored, as
                PettingZoo's API test requires.
        """
        supported = {name: value for name, value in (options or {}).items() if name in _OPTIONS}
        self._observations, infos = self._env.reset(seed=seed, options=supported)
        self.agents = list(PLAYERS)
        return self._by_player(), _infos(infos)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Step the match with the actions of both players."""
        if not self.agents:
            raise SlotFinishedError("the match is over or has not started: call reset first")
        missing = [player for player in PLAYERS if player not in actions]
        if missing:
            raise InvalidActionError(f"the action of {missing[0]!r} is missing")
        both = np.concatenate([np.atleast_1d(actions[player]) for player in PLAYERS])
        self._observations, _, terminated, truncated, infos = self._env.step(both)
        if terminated or truncated:
            self.agents = []
        rewards = dict(zip(PLAYERS, infos["rewards"].tolist(), strict=True))
        return (
            self._by_player(),
            rewards,
            dict.fromkeys(PLAYERS, terminated),
            dict.fromkeys(PLAYERS, truncated),
            _infos(infos),
        )

    def state(self) -> npt.NDArray[np.float32]:
        """Return the state of the match: the observation of the first player, which is complete."""
        state: npt.NDArray[np.float32] = self._observations[0].copy()
        return state

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return an image. With ``"human"``, resets and steps update the window."""
        image: npt.NDArray[np.uint8] | None = self._env.render()
        return image

    def close(self) -> None:
        """Release all resources. A second call does nothing."""
        self._env.close()

    def _by_player(self) -> Observations:
        rows = zip(PLAYERS, self._observations, strict=True)
        return {player: observation.copy() for player, observation in rows}


@replaceable_by_kernel
def parallel_env(**arguments: Any) -> HockeyMatch:
    """Create a match; the arguments are those of :class:`HockeyMatch`."""
    return HockeyMatch(**arguments)


raw_env = parallel_env
"""Same as :func:`parallel_env`, which uses no wrappers."""


def env(**arguments: Any) -> AECEnv:
    """Create a match as an AEC environment, in which players act one after the other."""
    return parallel_to_aec(parallel_env(**arguments))


def _infos(columns: dict[str, Any]) -> Infos:
    return {
        player: {
            name: column[place].item() for name, column in columns.items() if name != "rewards"
        }
        for place, player in enumerate(PLAYERS)
    }
