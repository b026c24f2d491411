"""The scripted player, for one match or a vector of matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._envs.hockey.kernels import SEEN

__all__ = ["BasicOpponent", "BasicOpponents"]


def _seed_words(seed: int | None) -> list[int]:
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(4)]


class BasicOpponents:
    """One scripted player for each match of a vector.

    Args:
        num_envs: The number of matches.
        weak: Whether players move slowly: one value for all or one per match.
        seed: The seed of the players' generators; each player has a separate stream of random
            numbers. NumPy's global generator is not used.
        keep_mode: Whether players shoot. If False, actions have three elements.

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
        self._players = _native.ScriptedPlayers(num_envs, _seed_words(seed))

    @property
    def weak(self) -> npt.NDArray[np.bool_]:
        """Whether each player is weak."""
        return self._weak

    @weak.setter
    def weak(self, weak: bool | npt.ArrayLike) -> None:
        flags = np.asarray(weak)
        if flags.dtype != np.bool_ or flags.shape not in ((), (self.num_envs,)):
            raise ValueError(
                f"weak must be a bool or an array of {self.num_envs} bools, got {weak!r}"
            )
        self._weak = np.array(np.broadcast_to(flags, self.num_envs))

    def seed(self, seed: int | None) -> None:
        """Reset the generators, as if the object were created with this seed."""
        self._players.seed(_seed_words(seed))

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
        """Return the actions of all players.

        Args:
            observations: An array of shape (num_envs, 18), each row in the player's frame of
                reference.
            out: A float32 array of shape (num_envs, 4), or (num_envs, 3) without keep mode, that
                receives the actions; it may be a slice of a larger array. By default a new array.
        """
        observed = np.asarray(observations, np.float32)
        if observed.shape != (self.num_envs, SEEN):
            raise ValueError(
                f"observations must have shape {(self.num_envs, SEEN)}, got {observed.shape}"
            )
        if observed.strides[1] != observed.itemsize:
            observed = np.ascontiguousarray(observed)
        shape = self.num_envs, 4 if self.keep_mode else 3
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.dtype != np.float32 or out.shape != shape or out.strides[1] != out.itemsize:
            raise ValueError(
                f"out must be a float32 array of shape {shape} with contiguous rows, got "
                f"{out.dtype} of shape {out.shape} with strides {out.strides}"
            )
        if self.keep_mode:
            self._players.act(observed, self._weak, out)
            return out
        actions = np.empty((self.num_envs, 4), np.float32)
        self._players.act(observed, self._weak, actions)
        out[...] = actions[:, :3]
        return out


class BasicOpponent:
    """The scripted player for one match.

    Args:
        weak: Whether the player moves slowly.
        keep_mode: Whether the player shoots. If False, actions have three elements.
        seed: The seed of the player's generator. NumPy's global generator is not used.

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
        self._vector = BasicOpponents(1, bool(weak), seed, keep_mode=keep_mode)

    def seed(self, seed: int | None) -> None:
        """Reset the generators, as if the object were created with this seed."""
        self._vector.seed(seed)

    def act(self, obs: npt.ArrayLike, verbose: bool = False) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """Return the action for an observation.

        Args:
            obs: The 18 elements of the player's observation.
            verbose: Ignored.
        """
        self._vector.weak = bool(self.weak)
        observed = np.asarray(obs, np.float32)
        if observed.shape != (SEEN,):
            raise ValueError(f"obs must have shape ({SEEN},), got {observed.shape}")
        action: npt.NDArray[np.float32] = self._vector.act(observed[None])[0]
        return action.astype(np.float64)
