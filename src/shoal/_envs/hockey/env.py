"""Hockey with the interface of its reference, for code that was written for that."""

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

_MOST_STEPS = {Mode.NORMAL: 250, Mode.TRAIN_SHOOTING: 80, Mode.TRAIN_DEFENSE: 80}
_WITHIN = 1e3
"""Numbers of a state are smaller than that, whatever they are."""


class Vector(NamedTuple):
    """A point, or a velocity."""

    x: float
    y: float


class Body(NamedTuple):
    """Where a racket or the puck is: metres from the lower left corner, radians, and seconds."""

    position: Vector
    angle: float
    linearVelocity: Vector  # noqa: N815 - the reference's name
    angularVelocity: float  # noqa: N815 - the reference's name


class HockeyEnv(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[Any]]):
    """One match, in which both players act at once and the first one observes.

    What differs from the reference, on purpose: an episode that reaches its time limit is
    truncated, not terminated (a loop should end by ``terminated or truncated``), and a step after
    its end is refused. All random numbers follow from the seed of the last seeded reset.
    Observations have 18 numbers in every mode. Bodies can be looked at, and are put elsewhere by
    ``set_state``. ``close`` is the end. A mode that is set counts from the next reset on.

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
        self._played = read_mode(mode)
        self.action_space = kernel.action_space
        self.observation_space = spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)
        self.num_actions = 4 if keep_mode else 3
        self.discrete_action_space = spaces.Discrete(8 if keep_mode else 7)
        self._seen, self._infos = self._env.reset()
        self.done = False

    @property
    def keep_mode(self) -> bool:
        """Whether a racket keeps a puck that it catches; said when the environment is made."""
        return self.num_actions == 4

    @property
    def mode(self) -> Mode:
        """The mode of the next match, and of this one unless it was set meanwhile."""
        return read_mode(self._env.mode)

    @mode.setter
    def mode(self, mode: Mode | str | int) -> None:
        self._env.mode = mode

    @property
    def max_timesteps(self) -> int:
        """An episode lasts one step longer at most."""
        return _MOST_STEPS[self._played]

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

    set_seed = seed

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a match.

        Args:
            one_starting: Whether the first player starts. By default they take turns, and the
                first turn after a seed is drawn.
            mode: The mode from now on; by default it stays.
            seed: Of everything that is random.
            options: ``one_starting`` and ``mode`` may be given here as well.
        """
        super().reset(seed=seed)  # for those who ask it whether it was seeded
        chosen = dict(options or {})
        if one_starting is not None:
            chosen["one_starting"] = one_starting
        in_options = chosen.pop("mode", None)
        mode = in_options if mode is None else mode
        if mode is not None:
            self.mode = read_mode(mode)
        if seed is not None:
            self._seed_others(seed)
        self._seen, self._infos = self._env.reset(seed=seed, options=chosen)
        self._played, self.done = self.mode, False
        return self._seen[0].copy(), self._info(0)

    def _seed_others(self, seed: int) -> None:
        """Seed whoever draws numbers besides the match itself: here nobody."""

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Let both players act: the numbers of the first one, then those of the second."""
        return self._step(self._numbers(action))

    def _numbers(self, action: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """An action as an array of the shape that the space says."""
        try:
            numbers = np.asarray(action, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"an action must be numbers, got {action!r}") from error
        if numbers.shape != self.action_space.shape:
            raise ValueError(
                f"an action has the shape {self.action_space.shape}, got {numbers.shape}; "
                "discrete_to_continous_action makes one of a choice"
            )
        return numbers

    def _step(
        self, numbers: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        was_done, self.done = self.done, True  # should it fail
        try:
            self._seen, _, terminated, truncated, self._infos = self._env.step(numbers)
        except ValueError:
            self.done = was_done  # nothing has happened
            raise
        self.done = terminated or truncated
        info = self._info(0)
        return self._seen[0].copy(), self.get_reward(info), terminated, truncated, info

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """What the second player sees, as if it were the first."""
        seen: npt.NDArray[np.float32] = self._seen[1]
        return seen.copy()

    def get_info_agent_two(self) -> dict[str, Any]:
        """The info of the second player."""
        return self._info(1)

    def get_reward(self, info: dict[str, Any]) -> float:
        """The reward of the first player; a subclass may have another one."""
        return float(10 * info["winner"] + info["reward_closeness_to_puck"])

    def get_reward_agent_two(self, info_two: dict[str, Any]) -> float:
        """The reward of the second player, given its info."""
        return float(10 * info_two["winner"] + info_two["reward_closeness_to_puck"])

    def set_state(self, state: npt.ArrayLike, puck_spin: float | None = None) -> None:
        """Put everything where the first player sees it; a match that is over begins anew.

        What no observation shows stays as it is: the spin of the puck, unless it is given, and
        which rackets it has touched in the last step. Infos are those of the last step or reset.

        Args:
            state: An observation of the first player, counters of possession included.
            puck_spin: The spin of the puck.
        """
        numbers = np.asarray(state, np.float32)
        if numbers.shape != (SEEN,):
            raise ValueError(f"a state has {SEEN} numbers, got an array of shape {numbers.shape}")
        if not (np.abs(numbers) < _WITHIN).all():
            raise ValueError(f"the numbers of a state are smaller than {_WITHIN:g}, got {numbers}")
        counters = numbers[16:]
        most = MAX_TIME_KEEP_PUCK if self.keep_mode else 0
        if (counters != np.clip(np.floor(counters), 0, most)).any():
            raise ValueError(
                f"counters of possession are whole numbers from 0 to {most}, got "
                f"{counters.tolist()}"
            )
        if puck_spin is not None and not abs(puck_spin) < _WITHIN:
            raise ValueError(f"puck_spin must be a number, got {puck_spin!r}")
        if self.done:
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
        choice = int(np.asarray(discrete_action).item())
        if choice not in self.discrete_action_space:
            raise ValueError(
                f"expected a number from 0 to {self.discrete_action_space.n - 1}, got {choice}"
            )
        numbers = [0.0] * self.num_actions
        if choice:
            which, is_positive = divmod(choice - 1, 2)
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
        weak_opponent: Whether the opponent is slow to move. (Anything that has ``act(obs)`` can
            take its place: set ``opponent``.)
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

    def _seed_others(self, seed: int) -> None:
        """A seed is the scripted opponent's, too; one of the user's is seeded by the user."""
        if isinstance(self.opponent, BasicOpponent):
            self.opponent.seed(seed)

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Act, and let the opponent act."""
        first = self._numbers(action)
        return self._step(np.hstack([first, self.opponent.act(self.obs_agent_two())]))
