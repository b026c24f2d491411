"""Hockey with the interface of its reference, for code that was written for that."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from shoal.envs.hockey.kernels import SEEN, make_kernel
from shoal.envs.hockey.opponents import BasicOpponent
from shoal.envs.hockey.values import Mode, read_mode
from shoal.envs.single import KernelEnv
from shoal.envs.window import Window

__all__ = ["HockeyEnv", "HockeyEnv_BasicOpponent"]

_MOST_STEPS = {Mode.NORMAL: 250, Mode.TRAIN_SHOOTING: 80, Mode.TRAIN_DEFENSE: 80}


class HockeyEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[Any]]):
    """One match, in which both players act at once and the first one observes.

    An episode that reaches its time limit is truncated, not terminated. All random numbers follow
    from the seed of the last seeded reset. Observations have 18 numbers in every mode.

    Args:
        keep_mode: Whether a racket keeps a puck that it catches, to be shot. Where it does not,
            actions have three numbers for each player instead of four.
        mode: A :class:`Mode`, its name or its number.
        verbose: Is taken no notice of.
        render_mode: ``"rgb_array"``, ``"human"`` or None; ``render`` can be told, too.

    Example:
        >>> from shoal.hockey import HockeyEnv, Mode
        >>> env = HockeyEnv(mode=Mode.TRAIN_SHOOTING)
        >>> observation, info = env.reset(seed=0)
        >>> actions = np.zeros(4), np.zeros(4)
        >>> observation, reward, terminated, truncated, info = env.step(np.hstack(actions))
        >>> observation_two, info_two = env.obs_agent_two(), env.get_info_agent_two()
        >>> env.get_reward_agent_two(info_two)
        0.0
        >>> env.close()
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 50}  # noqa: RUF012 - Gymnasium's

    def __init__(
        self,
        keep_mode: bool = True,
        mode: Mode | str | int = Mode.NORMAL,
        verbose: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.keep_mode = keep_mode
        self.mode = read_mode(mode)
        self.verbose = verbose
        self.render_mode = render_mode
        kernel = make_kernel(2, mode=self.mode, keep_mode=keep_mode)
        self._env = KernelEnv(kernel, render_mode)
        self.action_space = kernel.action_space
        self.observation_space = spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)
        self.num_actions = 4 if keep_mode else 3
        self.discrete_action_space = spaces.Discrete(8 if keep_mode else 7)
        self._seen = np.zeros((2, SEEN), np.float32)
        self._infos: dict[str, npt.NDArray[Any]] = {}
        self._is_over = True

    @property
    def max_timesteps(self) -> int:
        """An episode lasts one step longer at most."""
        return _MOST_STEPS[self.mode]

    @property
    def time(self) -> int:
        """How many steps the episode has had."""
        return int(self._state["time"])

    @property
    def winner(self) -> int:
        """1 for the first player, -1 for the second, 0 for nobody."""
        return int(self._state["winner"])

    @property
    def player1_has_puck(self) -> int:
        """For how many steps the first player may still keep the puck; 0 if it does not."""
        return int(self._state["observation"][16])

    @property
    def player2_has_puck(self) -> int:
        """The same for the second player."""
        return int(self._state["observation"][17])

    @property
    def np_random(self) -> np.random.Generator:
        """A copy of the generator."""
        return self._env.np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._env.np_random = value

    @property
    def np_random_seed(self) -> int:
        """The seed of the generator; -1 before it has one."""
        return self._env.np_random_seed

    @property
    def window(self) -> Window:
        """Where people see the match; it opens with the first picture."""
        return self._env.window

    @property
    def _state(self) -> Any:
        return self._env.pool.state[0]

    def seed(self, seed: int | None = None) -> list[int]:
        """Begin anew with this seed."""
        self.reset(seed=seed)
        return [self.np_random_seed]

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a match.

        Args:
            one_starting: Whether the first player begins; by default they take turns.
            mode: The mode from now on; by default it stays.
            seed: Of everything that is random.
            options: ``one_starting`` and ``mode`` may be given here as well.
        """
        super().reset(seed=seed)  # for those who ask it whether it was seeded
        chosen = dict(options or {})
        if one_starting is not None:
            chosen["one_starting"] = one_starting
        mode = chosen.pop("mode", None) if mode is None else mode
        if mode is not None:
            self.mode = read_mode(mode)
            self._env.pool.set_parameter(0, "mode", float(self.mode))
        self._seen, self._infos = self._env.reset(seed=seed, options=chosen)
        self._is_over = False
        return self._seen[0].copy(), self._info(0)

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Let both players act: the numbers of the first one, then those of the second."""
        self._seen, reward, terminated, truncated, self._infos = self._env.step(action)
        self._is_over = terminated or truncated
        return self._seen[0].copy(), reward, terminated, truncated, self._info(0)

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """What the second player sees, as if it were the first."""
        seen: npt.NDArray[np.float32] = self._seen[1]
        return seen.copy()

    def get_info_agent_two(self) -> dict[str, Any]:
        """The info of the second player."""
        return self._info(1)

    def get_reward(self, info: dict[str, Any]) -> float:
        """The reward of the first player."""
        return float(10 * info["winner"] + info["reward_closeness_to_puck"])

    def get_reward_agent_two(self, info_two: dict[str, Any]) -> float:
        """The reward of the second player, given its info."""
        return self.get_reward(info_two)

    def set_state(self, state: npt.ArrayLike, puck_spin: float | None = None) -> None:
        """Put everything where the first player sees it; a match that is over begins anew.

        Args:
            state: An observation of the first player, counters of possession included.
            puck_spin: The spin of the puck, which nobody sees; by default it stays.
        """
        numbers = np.asarray(state, np.float32)
        if numbers.shape != (SEEN,) or not np.isfinite(numbers).all():
            raise ValueError(f"expected an observation of {SEEN} numbers, got {state!r}")
        if self._is_over:
            self.reset()
        record = self._state
        record["observation"] = numbers
        if puck_spin is not None:
            record["puck_spin"] = puck_spin
        record["shot"] = 0.0
        # Who keeps the puck has touched it before.
        record["touching"] |= (numbers[16] > 0) + 2 * (numbers[17] > 0)
        record["winner"] = 0
        turned = np.array([-1, -1, 1, -1, -1, 1], np.float32)
        first, second, puck, kept = np.split(numbers, [6, 12, 16])
        self._seen = np.stack(
            [numbers, np.hstack([turned * second, turned * first, -puck, kept[::-1]])]
        )

    def discrete_to_continous_action(self, discrete_action: int) -> list[float]:
        """The numbers for one of: nothing, x-, x+, y-, y+, turn-, turn+, shoot."""
        if discrete_action not in self.discrete_action_space:
            raise ValueError(
                f"expected a number from 0 to {self.discrete_action_space.n - 1}, got "
                f"{discrete_action!r}"
            )
        numbers = [0.0] * self.num_actions
        if discrete_action:
            which, is_positive = divmod(int(discrete_action) - 1, 2)
            numbers[which] = 1.0 if is_positive or which == 3 else -1.0
        return numbers

    def render(self, mode: str | None = None) -> npt.NDArray[np.uint8] | None:
        """Show the match.

        Args:
            mode: ``"rgb_array"`` for a picture, ``"human"`` for a window; by default the render
                mode, or a window.
        """
        mode = mode or self.render_mode or "human"
        if mode == "rgb_array":
            return self._env.picture()
        if mode != "human":
            raise ValueError(f"render mode must be 'human' or 'rgb_array', got {mode!r}")
        self._env.show()
        return None

    def close(self) -> None:
        """Give everything back."""
        self._env.close()

    def _info(self, player: int) -> dict[str, Any]:
        columns = {name: column[player].item() for name, column in self._infos.items()}
        columns.pop("rewards", None)
        return columns


class HockeyEnv_BasicOpponent(HockeyEnv):  # noqa: N801 - the reference's name
    """A match against the scripted player: an action is what the first player does.

    Args:
        mode: A :class:`Mode`, its name or its number.
        weak_opponent: Whether the opponent is slow to move.
        keep_mode: As in :class:`HockeyEnv`.
        render_mode: As in :class:`HockeyEnv`.
    """

    def __init__(
        self,
        mode: Mode | str | int = Mode.NORMAL,
        weak_opponent: bool = False,
        keep_mode: bool = True,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(keep_mode, mode, render_mode=render_mode)
        self.opponent = BasicOpponent(weak=weak_opponent, keep_mode=keep_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (self.num_actions,), np.float32)

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a match; a seed is the opponent's, too."""
        if seed is not None:
            self.opponent.seed(seed)
        return super().reset(one_starting, mode, seed, options)

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Act, and let the opponent act."""
        second = self.opponent.act(self.obs_agent_two())
        return super().step(np.hstack([np.asarray(action, np.float64), second]))
