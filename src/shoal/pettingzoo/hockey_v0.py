"""Laser hockey as a PettingZoo environment: one match, in which both players are agents.

    >>> from shoal.pettingzoo import hockey_v0
    >>> env = hockey_v0.parallel_env(render_mode="rgb_array")
    >>> observations, infos = env.reset(seed=1)
    >>> observations["player_2"].shape
    (18,)
    >>> env.close()

Each player sees the match as if it played from left to right; :mod:`shoal.hockey` tells what it
sees, what it does and what it gets for it. A match ends for both at once: terminated by a goal,
truncated after 251 steps. Thousands of them are ``shoal.pettingzoo.make(parallel_env, 4096)``,
which steps the kernel itself.
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
from shoal.pettingzoo._hockey_ids import made_by_kernel
from shoal.pettingzoo._hockey_teams import PLAYERS, players_of

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError as error:
    raise MissingExtraError(
        "PettingZoo is not installed: pip install 'shoal[pettingzoo]'"
    ) from error

__all__ = ["HockeyMatch", "env", "parallel_env", "raw_env"]

Seen = dict[str, npt.NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]

_OPTIONS = ("mode", "one_starting")


class HockeyMatch(ParallelEnv):  # type: ignore[misc]
    """One match between ``player_1`` and ``player_2``.

    Args:
        discrete: Whether an action is one of 8 numbers instead of 4 numbers from -1 to 1.
        mode: What is played: a :class:`shoal.hockey.Mode`, its name or its number.
        keep_mode: Whether a racket keeps a puck that it catches, to be shot. Where it does not,
            actions have no part for shooting.
        opponent: ``"weak"`` or ``"strong"``: a scripted player acts in the place of ``player_2``,
            whose own actions count for nothing.
        render_mode: ``"rgb_array"``, ``"human"`` for a window, which needs pygame, or None.
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
        members = players_of(kernel.action_space)
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        self._seen_spaces = dict(zip(PLAYERS, members.observation_spaces, strict=True))
        self._action_spaces = dict(zip(PLAYERS, members.action_spaces, strict=True))
        self.state_space = spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)
        self._seen = np.zeros((len(PLAYERS), SEEN), np.float32)

    def observation_space(self, agent: str) -> Space[Any]:
        """What a player sees; always the same object."""
        return self._seen_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """What a player does; always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, Infos]:
        """Begin a match.

        Args:
            seed: Of everything that is random.
            options: ``mode``, for one match, and ``one_starting``. Others are left alone, as
                PettingZoo's own test of environments has it.
        """
        known = {name: value for name, value in (options or {}).items() if name in _OPTIONS}
        self._seen, told = self._env.reset(seed=seed, options=known)
        self.agents = list(PLAYERS)
        return self._by_player(), _infos(told)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Seen, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Let both players act."""
        if not self.agents:
            raise SlotFinishedError("the match is over, or has not begun: it needs a reset")
        missing = [player for player in PLAYERS if player not in actions]
        if missing:
            raise InvalidActionError(f"there is no action of {missing[0]!r}, which is on the field")
        both = np.concatenate([np.atleast_1d(actions[player]) for player in PLAYERS])
        self._seen, _, terminated, truncated, told = self._env.step(both)
        if terminated or truncated:
            self.agents = []
        rewards = dict(zip(PLAYERS, told["rewards"].tolist(), strict=True))
        return (
            self._by_player(),
            rewards,
            dict.fromkeys(PLAYERS, terminated),
            dict.fromkeys(PLAYERS, truncated),
            _infos(told),
        )

    def state(self) -> npt.NDArray[np.float32]:
        """The match as the first player sees it, in which everything is."""
        state: npt.NDArray[np.float32] = self._seen[0].copy()
        return state

    def render(self) -> npt.NDArray[np.uint8] | None:
        """A picture; in a window, resets and steps show it themselves."""
        picture: npt.NDArray[np.uint8] | None = self._env.render()
        return picture

    def close(self) -> None:
        """Give everything back; a second call does nothing."""
        self._env.close()

    def _by_player(self) -> Seen:
        return {player: seen.copy() for player, seen in zip(PLAYERS, self._seen, strict=True)}


@made_by_kernel
def parallel_env(**arguments: Any) -> HockeyMatch:
    """One match; the arguments are those of :class:`HockeyMatch`."""
    return HockeyMatch(**arguments)


raw_env = parallel_env
"""The same: there is nothing around it."""


def env(**arguments: Any) -> AECEnv:
    """One match in which players act one after the other, for code that is written for that."""
    return parallel_to_aec(parallel_env(**arguments))


def _infos(told: dict[str, Any]) -> Infos:
    return {
        player: {name: column[place].item() for name, column in told.items() if name != "rewards"}
        for place, player in enumerate(PLAYERS)
    }
