"""Agents, curricula, opponents and resumable training runs on vector environments.

    >>> from shoal.train import train_single_run
    >>> result = train_single_run("configs/curriculum_simple.json", num_envs=8)  # doctest: +SKIP

A config is a JSON file (see :mod:`shoal.train._config.schema`), of which some are bundled:
``cartpole_dddqn``, ``pendulum_sac``, ``curriculum_simple``, ``hockey_dddqn``, ``hockey_sac``,
``hockey_ppo``, ``hockey_league`` and ``hockey_demo``. The command line equivalent is
``shoal train CONFIG``.

An agent can also be used without a run, and saved to and loaded from a file:

    >>> import numpy as np
    >>> from gymnasium import spaces
    >>> from shoal.train import AgentSpaces, make_agent
    >>> agent = make_agent("DDDQN", AgentSpaces(4, spaces.Discrete(2)), {"hidden_dim": [64, 64]})
    >>> agent.act_batch(np.zeros((5, 4)), deterministic=True).shape
    (5,)

How it works: docs/internals/training.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import MissingExtraError

if TYPE_CHECKING:
    from shoal.train._agents import (
        DDDQN,
        PPO,
        SAC,
        Agent,
        AgentSpaces,
        load_agent,
        make_agent,
    )
    from shoal.train._config import Config, load_config
    from shoal.train._evaluation import play_episodes, play_matches
    from shoal.train._saved_agents import evaluate_agent, film_agent, play_tournament
    from shoal.train._single_run import resume_run, train_single_run

__all__ = [
    "DDDQN",
    "PPO",
    "SAC",
    "Agent",
    "AgentSpaces",
    "Config",
    "evaluate_agent",
    "film_agent",
    "load_agent",
    "load_config",
    "make_agent",
    "play_episodes",
    "play_matches",
    "play_tournament",
    "resume_run",
    "train_single_run",
]

_MODULES = {
    "evaluate_agent": "_saved_agents",
    "film_agent": "_saved_agents",
    "play_tournament": "_saved_agents",
    "Config": "_config",
    "load_config": "_config",
    "play_episodes": "_evaluation",
    "play_matches": "_evaluation",
    "resume_run": "_single_run",
    "train_single_run": "_single_run",
}

_REQUIRED_PACKAGES = ("torch", "msgspec", "openskill", "rich")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULES.get(name, '_agents')}")
    except ModuleNotFoundError as error:
        if error.name not in _REQUIRED_PACKAGES:
            raise
        raise MissingExtraError(
            f'training needs {error.name}, which is not installed: pip install "shoal[train]"'
        ) from error
    return getattr(module, name)
