"""PettingZoo's parallel environments: agents times environments, by Shoal and by SuperSuit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space
from pettingzoo import ParallelEnv

from benchmarks.alone import call_alone
from benchmarks.judging import times
from benchmarks.required import measure_required
from shoal._bench.contenders.base import SEED, Lockstep
from shoal._bench.process import ContenderError
from shoal._bench.results import Cell
from shoal._bench.runner import Settings

__all__ = ["CONTENDERS", "GAMES", "REQUIRED", "March", "measure_game", "measure_pettingzoo"]

_INLINE, _PROCESS, _NATIVE = "shoal-inline", "shoal-process", "shoal"
_SERIAL, _TWO = "supersuit", "supersuit-2"

REQUIRED = (
    times(_INLINE, _SERIAL, "march", 8, at_least=2.0),
    times(_INLINE, _SERIAL, "march", 64, at_least=3.0),
    times(_PROCESS, _TWO, "march", 64, at_least=3.0),
    times(_INLINE, _SERIAL, "hockey", 64, at_least=1.0),
    times(_NATIVE, _SERIAL, "hockey", 64, at_least=20.0),
    times(_NATIVE, _TWO, "hockey", 64, at_least=20.0),
)

_LEGEND = (
    "A step is one agent's. In march four agents are shown eight numbers, and "
    "nothing is computed; hockey is Shoal's, as a PettingZoo environment. supersuit is "
    "concat_vec_envs_v1 with num_cpus=0, supersuit-2 with num_cpus=2; shoal-inline and "
    "shoal-process step the same Python environments, shoal steps the kernel of hockey."
)

_PACKAGES = ("shoal", "supersuit", "pettingzoo", "gymnasium", "numpy")

_WARM_UP_SECONDS = 0.05


class March(ParallelEnv):  # type: ignore[misc]
    """Agents that walk nowhere for a hundred steps, and are then truncated."""

    metadata: ClassVar[dict[str, Any]] = {"name": "march_v0", "render_modes": []}
    render_mode = None

    _STEPS = 100

    def __init__(self) -> None:
        self.possible_agents = [f"walker_{number}" for number in range(4)]
        self.agents: list[str] = []
        self._seen = {agent: np.zeros(8, np.float32) for agent in self.possible_agents}
        self._seen_space, self._action_space = spaces.Box(-1, 1, (8,)), spaces.Discrete(5)
        self._time = 0

    def observation_space(self, agent: str) -> Space[Any]:  # noqa: ARG002
        """Eight numbers, for each of them."""
        return self._seen_space

    def action_space(self, agent: str) -> Space[Any]:  # noqa: ARG002
        """One of five, for each of them."""
        return self._action_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:  # noqa: ARG002
        """Begin anew."""
        self.agents = self.possible_agents[:]
        self._time = 0
        return dict(self._seen), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Walk."""
        self._time += 1
        acted, is_over = self.agents, self._time == self._STEPS
        if is_over:
            self.agents = []
        return (
            dict(self._seen),
            dict.fromkeys(actions, 1.0),
            dict.fromkeys(actions, False),
            dict.fromkeys(actions, is_over),
            {agent: {} for agent in acted},
        )


def _hockey() -> Any:
    from shoal.pettingzoo import hockey_v0

    return hockey_v0.parallel_env()


GAMES: dict[str, Callable[[], Any]] = {"march": March, "hockey": _hockey}


def _shoal(make_env: Callable[[], Any], num_envs: int, backend: str) -> Any:
    from shoal.pettingzoo import make

    return make(make_env, num_envs, backend=backend, autoreset_mode="SameStep")


def _native(_: Callable[[], Any], num_envs: int) -> Any:
    return _shoal("shoal/Hockey-v0", num_envs, "kernel")  # type: ignore[arg-type]


def _supersuit(make_env: Callable[[], Any], num_envs: int, num_cpus: int) -> Any:
    from supersuit import concat_vec_envs_v1, pettingzoo_env_to_vec_env_v1

    return concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(make_env()), num_envs, num_cpus)


CONTENDERS: dict[str, Callable[[Callable[[], Any], int], Any]] = {
    _NATIVE: _native,
    _INLINE: partial(_shoal, backend="inline"),
    _PROCESS: partial(_shoal, backend="process"),
    _SERIAL: partial(_supersuit, num_cpus=0),
    _TWO: partial(_supersuit, num_cpus=2),
}


def measure_pettingzoo(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``pettingzoo`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    return measure_required(
        "pettingzoo",
        REQUIRED,
        _LEGEND,
        settings,
        output,
        title="PettingZoo",
        apart=dict.fromkeys(GAMES, partial(measure_game, settings)),
        versions={"all": {package: version(package) for package in _PACKAGES}},
    )


def measure_game(settings: Settings, game: str, num_envs: int, names: Collection[str]) -> Cell:
    """Measure these contenders in turn, in a process of their own."""
    running = [name for name in CONTENDERS if name in names]
    cell = Cell(game, num_envs, running)
    stepping = settings.rounds * settings.seconds * len(running)
    try:
        cell.rates = call_alone(
            rates_in_turn, game, num_envs, running, settings, timeout=settings.timeout + stepping
        )
    except ContenderError as error:
        cell.failures = dict.fromkeys(running, str(error))
    return cell


def rates_in_turn(
    game: str, num_envs: int, names: Collection[str], settings: Settings
) -> dict[str, list[float]]:
    """Step all in turn; returns the agents' steps per second of each, round by round."""
    vectors: dict[str, Lockstep] = {}
    rates: dict[str, list[float]] = {name: [] for name in names}
    try:
        for name in names:
            vectors[name] = _opened(name, GAMES[game], num_envs)
            vectors[name].step_many(_WARM_UP_SECONDS)
        order = list(vectors)
        for _ in range(settings.rounds):
            order = [*order[1:], order[0]]
            for name in order:
                steps, elapsed = vectors[name].step_many(settings.seconds)
                rates[name].append(steps / elapsed)
    finally:
        for vector in vectors.values():
            vector.close()
    return rates


def _opened(name: str, make_env: Callable[[], Any], num_envs: int) -> Lockstep:
    envs = CONTENDERS[name](make_env, num_envs)
    envs.reset(seed=SEED)
    env = make_env()
    try:
        # Of one agent: SuperSuit's vectors tell single spaces as batched.
        space = batch_space(env.action_space(env.possible_agents[0]), envs.num_envs)
    finally:
        env.close()
    space.seed(SEED)
    batches: list[npt.NDArray[Any]] = [np.asarray(space.sample()) for _ in range(8)]
    return Lockstep(envs.step, batches, envs.close)
