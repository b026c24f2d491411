"""PettingZoo's parallel environments, stepped by Shoal and by SuperSuit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space
from pettingzoo import ParallelEnv

from benchmarks.turns import Measuring, Samplers, VectorSampler
from shoal._bench.contenders.base import SEED, Lockstep

__all__ = ["GAMES", "March", "samplers"]


class March(ParallelEnv):  # type: ignore[misc]
    """Four agents that always observe the same, truncated after a hundred steps."""

    metadata: ClassVar[dict[str, Any]] = {"name": "march_v0", "render_modes": []}
    render_mode = None

    _STEPS = 100

    def __init__(self) -> None:
        self.possible_agents = [f"walker_{number}" for number in range(4)]
        self.agents: list[str] = []
        self._observations = {agent: np.zeros(8, np.float32) for agent in self.possible_agents}
        self._observation_space, self._action_space = spaces.Box(-1, 1, (8,)), spaces.Discrete(5)
        self._steps = 0

    def observation_space(self, agent: str) -> Space[Any]:  # noqa: ARG002
        """Return the observation space that all agents share."""
        return self._observation_space

    def action_space(self, agent: str) -> Space[Any]:  # noqa: ARG002
        """Return the action space that all agents share."""
        return self._action_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:  # noqa: ARG002
        """Start an episode."""
        self.agents = self.possible_agents[:]
        self._steps = 0
        return dict(self._observations), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Step all agents."""
        self._steps += 1
        acted, is_over = self.agents, self._steps == self._STEPS
        if is_over:
            self.agents = []
        return (
            dict(self._observations),
            dict.fromkeys(actions, 1.0),
            dict.fromkeys(actions, False),
            dict.fromkeys(actions, is_over),
            {agent: {} for agent in acted},
        )


def _hockey() -> Any:
    from shoal.pettingzoo import hockey_v0

    return hockey_v0.parallel_env()


GAMES: dict[str, Callable[[], Any]] = {"march": March, "pettingzoo-hockey": _hockey}
"""The environment of each workload."""


def _shoal(make_env: Callable[[], Any], num_envs: int, backend: str) -> Any:
    from shoal.pettingzoo import make

    return make(make_env, num_envs, backend=backend, autoreset_mode="SameStep")


def _kernel(_: Callable[[], Any], num_envs: int) -> Any:
    return _shoal("shoal/Hockey-v0", num_envs, "kernel")  # type: ignore[arg-type]


def _supersuit(make_env: Callable[[], Any], num_envs: int, num_cpus: int) -> Any:
    from supersuit import concat_vec_envs_v1, pettingzoo_env_to_vec_env_v1

    return concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(make_env()), num_envs, num_cpus)


_CONTENDERS: dict[str, Callable[[Callable[[], Any], int], Any]] = {
    "shoal": _kernel,
    "shoal-inline": partial(_shoal, backend="inline"),
    "shoal-process": partial(_shoal, backend="process"),
    "supersuit": partial(_supersuit, num_cpus=0),
    "supersuit-2": partial(_supersuit, num_cpus=2),
}


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell."""
    game = GAMES[workload]
    return {name: partial(_sampler, make, game, size) for name, make in _CONTENDERS.items()}


def _sampler(
    make: Callable[[Callable[[], Any], int], Any], game: Callable[[], Any], num_envs: int
) -> VectorSampler:
    envs = make(game, num_envs)
    envs.reset(seed=SEED)
    env = game()
    try:
        # From the space of one agent: SuperSuit declares its single spaces as batched.
        space = batch_space(env.action_space(env.possible_agents[0]), envs.num_envs)
    finally:
        env.close()
    space.seed(SEED)
    batches: list[npt.NDArray[Any]] = [np.asarray(space.sample()) for _ in range(8)]
    return VectorSampler(Lockstep(envs.step, batches, envs.close))
