"""Hockey environments with the interface of the reference implementation."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from shoal._envs.hockey.kernels import METADATA, SEEN, make_kernel
from shoal._envs.hockey.opponents import BasicOpponent
from shoal._envs.hockey.values import CENTER_X, CENTER_Y, MAX_TIME_KEEP_PUCK, Mode, read_mode
from shoal._envs.single_env import KernelEnv
from shoal._envs.window import Window

__all__ = ["HockeyEnv", "HockeyEnv_BasicOpponent"]

_MAX_TIMESTEPS = {Mode.NORMAL: 250, Mode.TRAIN_SHOOTING: 80, Mode.TRAIN_DEFENSE: 80}
_STATE_LIMIT = 1e3
"""The absolute values in a state must be smaller than this."""


class Vector(NamedTuple):
    """A position or a velocity."""

    x: float
    y: float


class Body(NamedTuple):
    """The pose and velocity of a racket or the puck, in metres, radians and seconds.

    The origin is the lower left corner.
    """

    position: Vector
    angle: float
    linearVelocity: Vector  # noqa: N815 - the reference's name
    angularVelocity: float  # noqa: N815 - the reference's name


class HockeyEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[Any]]):
    """One match between two players; the caller provides the actions of both.

    ``step`` returns the observation, reward and info of the first player. Those of the second
    player are available from ``obs_agent_two``, ``get_reward_agent_two`` and
    ``get_info_agent_two``.

    Intentional differences from the reference implementation:

    - An episode that reaches its time limit is truncated, not terminated. End loops with
      ``terminated or truncated``.
    - A step after the end of an episode raises an error.
    - All randomness follows from the seed of the last seeded reset.
    - Observations have 18 elements in every mode.
    - Bodies are read-only; use ``set_state`` to move them.
    - A closed environment cannot be used again.
    - A new mode takes effect with the next reset.

    Args:
        keep_mode: Whether a racket holds the puck after catching it, until it shoots. If False,
            the action of a player has three elements instead of four.
        mode: A :class:`Mode`, its name or its number.
        verbose: Ignored.
        render_mode: ``"rgb_array"``, ``"human"`` or None. ``render`` also accepts a mode.

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

    metadata = METADATA

    def __init__(
        self,
        keep_mode: bool = True,
        mode: Mode | str | int = Mode.NORMAL,
        verbose: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.verbose = verbose
        self.render_mode = render_mode
        kernel = make_kernel(2, mode=mode, keep_mode=keep_mode)
        self._env = KernelEnv(kernel, render_mode)
        self._episode_mode = read_mode(mode)
        self.action_space = kernel.action_space
        self.observation_space = spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)
        self.num_actions = 4 if keep_mode else 3
        self.discrete_action_space = spaces.Discrete(8 if keep_mode else 7)
        self._observations, self._infos = self._env.reset()
        self.done = False

    @property
    def keep_mode(self) -> bool:
        """Whether a racket holds the puck after catching it."""
        return self.num_actions == 4

    @property
    def mode(self) -> Mode:
        """The mode of the next episode. Assigning to it does not affect the current episode."""
        return read_mode(self._env.mode)

    @mode.setter
    def mode(self, mode: Mode | str | int) -> None:
        self._env.mode = mode

    @property
    def max_timesteps(self) -> int:
        """The time limit as the reference counts it: an episode lasts at most one step longer."""
        return _MAX_TIMESTEPS[self._episode_mode]

    @property
    def time(self) -> int:
        """The number of steps in this episode."""
        return int(self._state["time"])

    @property
    def winner(self) -> int:
        """1 if the first player has scored, -1 if the second player has, else 0."""
        return int(self._state["winner"])

    @property
    def player1_has_puck(self) -> int:
        """The number of steps for which the first player may still hold the puck, or 0."""
        return int(self._state["observation"][16])

    @property
    def player2_has_puck(self) -> int:
        """The number of steps for which the second player may still hold the puck, or 0."""
        return int(self._state["observation"][17])

    @property
    def player1(self) -> Body:
        """The racket of the first player."""
        return self._body(0)

    @property
    def player2(self) -> Body:
        """The racket of the second player."""
        return self._body(6)

    @property
    def puck(self) -> Body:
        """The puck."""
        x, y, vx, vy = self._state["observation"][12:16].tolist()
        spin = float(self._state["puck_spin"])
        return Body(Vector(x + CENTER_X, y + CENTER_Y), 0.0, Vector(vx, vy), spin)

    def _body(self, first: int) -> Body:
        x, y, angle, vx, vy, spin = self._state["observation"][first : first + 6].tolist()
        return Body(Vector(x + CENTER_X, y + CENTER_Y), angle, Vector(vx, vy), spin)

    @property
    def np_random(self) -> np.random.Generator:
        """A copy of the random number generator."""
        return self._env.np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._env.np_random = value

    @property
    def np_random_seed(self) -> int:
        """The seed of the generator; -1 before the first reset."""
        return self._env.np_random_seed

    @property
    def window(self) -> Window:
        """The window; it opens with its first image."""
        return self._env.window

    @property
    def _state(self) -> Any:
        return self._env.pool.state[0]

    def seed(self, seed: int | None = None) -> list[int]:
        """Reset with a seed; return a list with the seed."""
        self.reset(seed=seed)
        return [self.np_random_seed]

    set_seed = seed

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start a new episode.

        Args:
            one_starting: Whether the first player starts. By default the players alternate; after a
                seeded reset, the first starter is random.
            mode: The mode of this and later episodes. By default it does not change.
            seed: The seed of all randomness.
            options: May contain ``one_starting`` and ``mode``.
        """
        super().reset(seed=seed)  # checkers inspect whether it was called
        chosen = dict(options or {})
        if one_starting is not None:
            chosen["one_starting"] = one_starting
        option_mode = chosen.pop("mode", None)
        mode = option_mode if mode is None else mode
        if mode is not None:
            self.mode = read_mode(mode)
        if seed is not None:
            self._seed_opponent(seed)
        self._observations, self._infos = self._env.reset(seed=seed, options=chosen)
        self._episode_mode, self.done = self.mode, False
        return self._observations[0].copy(), self._info(0)

    def _seed_opponent(self, seed: int) -> None:
        """Seed the opponent of a subclass."""

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Step with the concatenated actions of the first and the second player."""
        return self._step(self._checked(action))

    def _checked(self, action: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Convert an action to an array of the action space's shape, or raise an error."""
        try:
            numbers = np.asarray(action, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"action must be numeric, got {action!r}") from error
        if numbers.shape != self.action_space.shape:
            raise ValueError(
                f"action must have shape {self.action_space.shape}, got {numbers.shape}; "
                "discrete_to_continous_action converts a discrete action"
            )
        return numbers

    def _step(
        self, numbers: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        was_done, self.done = self.done, True  # in case the step fails
        try:
            self._observations, _, terminated, truncated, self._infos = self._env.step(numbers)
        except ValueError:
            self.done = was_done  # an invalid action changes nothing
            raise
        self.done = terminated or truncated
        info = self._info(0)
        return self._observations[0].copy(), self.get_reward(info), terminated, truncated, info

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """Return the observation of the second player, in its frame of reference."""
        observation: npt.NDArray[np.float32] = self._observations[1]
        return observation.copy()

    def get_info_agent_two(self) -> dict[str, Any]:
        """Return the info of the second player."""
        return self._info(1)

    def get_reward(self, info: dict[str, Any]) -> float:
        """Return the reward of the first player for an info; subclasses may override it."""
        return float(10 * info["winner"] + info["reward_closeness_to_puck"])

    def get_reward_agent_two(self, info_two: dict[str, Any]) -> float:
        """Return the reward of the second player for its info."""
        return float(10 * info_two["winner"] + info_two["reward_closeness_to_puck"])

    def set_state(self, state: npt.ArrayLike, puck_spin: float | None = None) -> None:
        """Set the state from an observation of the first player.

        A finished episode is reset first. State that an observation does not contain is unchanged:
        the spin of the puck, unless given, and the rackets that the puck touched in the last step.
        Infos remain those of the last step or reset.

        Args:
            state: An observation of the first player, including the possession counters.
            puck_spin: The angular velocity of the puck.
        """
        numbers = np.asarray(state, np.float32)
        if numbers.shape != (SEEN,):
            raise ValueError(f"state must have shape ({SEEN},), got {numbers.shape}")
        if not (np.abs(numbers) < _STATE_LIMIT).all():
            raise ValueError(
                f"state must have absolute values below {_STATE_LIMIT:g}, got {numbers}"
            )
        counters = numbers[16:]
        limit = MAX_TIME_KEEP_PUCK if self.keep_mode else 0
        if (counters != np.clip(np.floor(counters), 0, limit)).any():
            raise ValueError(
                f"possession counters must be integers from 0 to {limit}, got {counters.tolist()}"
            )
        if puck_spin is not None and not abs(puck_spin) < _STATE_LIMIT:
            raise ValueError(
                f"puck_spin must have an absolute value below {_STATE_LIMIT:g}, got {puck_spin!r}"
            )
        if self.done:
            self.reset()
        record = self._state
        record["observation"] = numbers
        if puck_spin is not None:
            record["puck_spin"] = puck_spin
        record["shot"] = 0.0
        # A racket that holds the puck touches it.
        record["touching"] |= (numbers[16] > 0) + 2 * (numbers[17] > 0)
        record["winner"] = 0
        turned = np.array([-1, -1, 1, -1, -1, 1], np.float32)
        first, second, puck, kept = np.split(numbers, [6, 12, 16])
        self._observations = np.stack(
            [numbers, np.hstack([turned * second, turned * first, -puck, kept[::-1]])]
        )

    def discrete_to_continous_action(self, discrete_action: int) -> list[float]:
        """Convert a discrete action: nothing, x-, x+, y-, y+, turn-, turn+ or shoot."""
        choice = int(np.asarray(discrete_action).item())
        if choice not in self.discrete_action_space:
            raise ValueError(
                f"discrete_action must be from 0 to {self.discrete_action_space.n - 1}, got "
                f"{choice}"
            )
        numbers = [0.0] * self.num_actions
        if choice:
            element, is_positive = divmod(choice - 1, 2)
            numbers[element] = 1.0 if is_positive or element == 3 else -1.0
        return numbers

    def render(self, mode: str | None = None) -> npt.NDArray[np.uint8] | None:
        """Render the match.

        Args:
            mode: ``"rgb_array"`` returns an image, ``"human"`` shows a window. Defaults to the
                render mode of the environment, or to ``"human"`` if that is None.
        """
        mode = mode or self.render_mode or "human"
        if mode == "rgb_array":
            return self._env.draw_image()
        if mode != "human":
            raise ValueError(f"render mode must be 'human' or 'rgb_array', got {mode!r}")
        self._env.show()
        return None

    def close(self) -> None:
        """Close the window and the environment."""
        self._env.close()

    def _info(self, player: int) -> dict[str, Any]:
        columns = {name: column[player].item() for name, column in self._infos.items()}
        columns.pop("rewards", None)
        return columns


class HockeyEnv_BasicOpponent(HockeyEnv):  # noqa: N801 - the reference's name
    """A match against the scripted player; the caller provides the actions of the first player.

    The attribute ``opponent`` may be set to any object with a method ``act(obs)``.

    Args:
        mode: A :class:`Mode`, its name or its number.
        weak_opponent: Whether the opponent moves slowly.
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
        self.opponent: Any = BasicOpponent(weak=weak_opponent, keep_mode=keep_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (self.num_actions,), np.float32)

    def _seed_opponent(self, seed: int) -> None:
        """Seed the scripted opponent; the user seeds any other opponent."""
        if isinstance(self.opponent, BasicOpponent):
            self.opponent.seed(seed)

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Step with the action of the first player."""
        first = self._checked(action)
        return self._step(np.hstack([first, self.opponent.act(self.obs_agent_two())]))
