"""Agents by name, and from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from shoal.train._agents.actions import AgentSpaces
from shoal.train._agents.base import Agent, read_agent
from shoal.train._agents.dddqn import DDDQN
from shoal.train._agents.ppo import PPO
from shoal.train._agents.sac import SAC
from shoal.train._config.loading import convert

__all__ = ["AGENTS", "agent_from", "load_agent", "make_agent"]

AGENTS: dict[str, type[Agent]] = {agent.kind: agent for agent in (DDDQN, SAC, PPO)}


def make_agent(
    kind: str,
    spaces: AgentSpaces,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    num_slots: int = 1,
    device: str | torch.device = "cpu",
    seed: int = 0,
) -> Agent:
    """An agent that has learnt nothing yet.

    Args:
        kind: ``"DDDQN"``, ``"SAC"`` or ``"PPO"``.
        spaces: What it observes and does.
        hyperparameters: Its settings by name; see :mod:`shoal.train._config.agent_settings`.
        num_slots: How many slots it trains in.
        device: Where it computes.
        seed: Of everything that is random about it.

    Raises:
        ConfigError: A setting is unknown, or cannot be.
    """
    if kind not in AGENTS:
        raise ValueError(f"there is no agent {kind!r}; there are {', '.join(AGENTS)}")
    made = AGENTS[kind]
    settings = convert(dict(hyperparameters or {}), made.settings_type, "agent.hyperparameters")
    return made(spaces, settings, num_slots=num_slots, device=device, seed=seed)


def agent_from(
    description: Mapping[str, Any],
    *,
    num_slots: int = 1,
    device: str | torch.device = "cpu",
    seed: int = 0,
    name: str = "an agent",
) -> Agent:
    """An agent that has learnt what a description of it holds."""
    # What only training needs is not needed here.
    small = {"buffer_size": 1, "rollout_steps": 1}
    settings = dict(description["settings"])
    settings |= {key: value for key, value in small.items() if key in settings}
    agent = make_agent(
        description["kind"],
        AgentSpaces.from_state(description["spaces"]),
        settings,
        num_slots=num_slots,
        device=device,
        seed=seed,
    )
    agent.take(dict(description), name)
    return agent


def load_agent(path: str | Path, device: str | torch.device = "cpu", seed: int = 0) -> Agent:
    """An agent from a file that ``save`` has written, a checkpoint, or the folder of a run.

    Raises:
        CheckpointError: There is none, or it is damaged.
    """
    return agent_from(read_agent(path), device=device, seed=seed, name=str(path))
