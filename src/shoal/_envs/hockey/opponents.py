"""The scripted player, for one match and for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._envs.hockey.kernels import SEEN

__all__ = ["BasicOpponent", "BasicOpponents"]


def _words(seed: int | None) -> list[int]:
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(4)]


class BasicOpponents:
    """A scripted player for each match of a vector.

    Args:
        num_envs: How many matches.
        weak: Whether they are slow to move: all of them, or each. They are not by default.
        seed: Of their random numbers, of which each player draws its own. NumPy's global generator
            has no part in it.
        keep_mode: Whether they shoot; else their actions have three numbers.

    Example:
        >>> import shoal
        >>> from shoal.hockey import BasicOpponents
        >>> envs = shoal.make("shoal/Hockey-v0", num_envs=3)
        >>> observations, infos = envs.reset(seed=0)
        >>> first, second = BasicOpponents(3, weak=True, seed=1), BasicOpponents(3, seed=2)
        >>> actions = np.empty((3, 8), np.float32)
        >>> for _ in range(5):
        ...     _ = first.act(observations[:, 0], out=actions[:, :4])
        ...     _ = second.act(observations[:, 1], out=actions[:, 4:])
        ...     observations, rewards, terminated, truncated, infos = envs.step(actions)
        >>> infos["rewards"].shape
        (3, 2)
        >>> envs.close()
    """

    def __init__(
        self,
        num_envs: int,
        weak: bool | npt.ArrayLike = False,
        seed: int | None = None,
        *,
        keep_mode: bool = True,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be a positive integer, got {num_envs}")
        self.num_envs = num_envs
        self.weak = weak
        self.keep_mode = keep_mode
        self._players = _native.ScriptedPlayers(num_envs, _words(seed))

    @property
    def weak(self) -> npt.NDArray[np.bool_]:
        """Whether each player is weak."""
        return self._weak

    @weak.setter
    def weak(self, weak: bool | npt.ArrayLike) -> None:
        flags = np.asarray(weak)
        if flags.dtype != np.bool_ or flags.shape not in ((), (self.num_envs,)):
            raise ValueError(f"weak must be True, False, or {self.num_envs} of them, got {weak!r}")
        self._weak = np.array(np.broadcast_to(flags, self.num_envs))

    def seed(self, seed: int | None) -> None:
        """Begin anew, as if made with this seed."""
        self._players.seed(_words(seed))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_players": self._players.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_players")
        vars(self).update(state)
        self._players = _native.ScriptedPlayers(self.num_envs, [0])
        self._players.restore(saved)

    def act(
        self, observations: npt.ArrayLike, out: npt.NDArray[np.float32] | None = None
    ) -> npt.NDArray[np.float32]:
        """The actions of all players.

        Args:
            observations: (num_envs, 18), as each player sees its match.
            out: Where actions are written: (num_envs, 4) float32, such as a part of a larger
                array; (num_envs, 3) without keep mode. By default a new one.
        """
        seen = np.asarray(observations, np.float32)
        if seen.shape != (self.num_envs, SEEN):
            raise ValueError(
                f"observations must have the shape {(self.num_envs, SEEN)}, got {seen.shape}"
            )
        if seen.strides[1] != seen.itemsize:
            seen = np.ascontiguousarray(seen)
        shape = self.num_envs, 4 if self.keep_mode else 3
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.dtype != np.float32 or out.shape != shape or out.strides[1] != out.itemsize:
            raise ValueError(
                f"out must be float32 of the shape {shape}, the numbers of a row side by side, got "
                f"{out.dtype} of {out.shape} with strides {out.strides}"
            )
        if self.keep_mode:
            self._players.act(seen, self._weak, out)
            return out
        wanted = np.empty((self.num_envs, 4), np.float32)
        self._players.act(seen, self._weak, wanted)
        out[...] = wanted[:, :3]
        return out


class BasicOpponent:
    """The scripted player, for one match.

    Args:
        weak: Whether it is slow to move, as it is by default.
        keep_mode: Whether it shoots; else its actions have three numbers.
        seed: Of its random numbers, in which NumPy's global generator has no part.

    Example:
        >>> from shoal.hockey import BasicOpponent, HockeyEnv
        >>> env, player = HockeyEnv(), BasicOpponent(weak=False, seed=1)
        >>> observation, info = env.reset(seed=0)
        >>> player.act(observation).shape
        (4,)
        >>> env.close()
    """

    def __init__(self, weak: bool = True, keep_mode: bool = True, seed: int | None = None) -> None:
        self.weak = weak
        self.keep_mode = keep_mode
        self._one = BasicOpponents(1, bool(weak), seed, keep_mode=keep_mode)

    def seed(self, seed: int | None) -> None:
        """Begin anew, as if made with this seed."""
        self._one.seed(seed)

    def act(self, obs: npt.ArrayLike, verbose: bool = False) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """What to do.

        Args:
            obs: What it sees, 18 numbers.
            verbose: Is taken no notice of.
        """
        self._one.weak = bool(self.weak)
        seen = np.asarray(obs, np.float32)
        if seen.shape != (SEEN,):
            raise ValueError(f"expected {SEEN} numbers, got an observation of shape {seen.shape}")
        action: npt.NDArray[np.float32] = self._one.act(seen[None])[0]
        return action.astype(np.float64)
