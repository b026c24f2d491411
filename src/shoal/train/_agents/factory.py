"""Create agents by name, and load them from files."""

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
"""The agent classes by name."""


def make_agent(
    kind: str,
    spaces: AgentSpaces,
    hyperparameters: Mapping[str, Any] | None = None,
    *,
    num_slots: int = 1,
    device: str | torch.device = "cpu",
    seed: int = 0,
) -> Agent:
    """Create an untrained agent.

    Args:
        kind: ``"DDDQN"``, ``"SAC"`` or ``"PPO"``.
        spaces: The observations and actions of the agent.
        hyperparameters: Settings by name; see :mod:`shoal.train._config.agent_settings`.
        num_slots: The number of slots that the agent trains in.
        device: The device of the networks and the replay buffer.
        seed: The seed of all random numbers of the agent.

    Raises:
        ConfigError: A setting is unknown or has an invalid value.
    """
    if kind not in AGENTS:
        raise ValueError(f"unknown agent {kind!r}: expected one of {', '.join(AGENTS)}")
    agent_class = AGENTS[kind]
    settings = convert(
        dict(hyperparameters or {}), agent_class.settings_type, "agent.hyperparameters"
    )
    return agent_class(spaces, settings, num_slots=num_slots, device=device, seed=seed)


def agent_from(
    description: Mapping[str, Any],
    *,
    num_slots: int = 1,
    device: str | torch.device = "cpu",
    seed: int = 0,
    name: str = "an agent",
) -> Agent:
    """Create an agent from its description, as returned by ``Agent.description``.

    The agent is meant for acting: its replay buffer or rollout has the smallest possible size.
    """
    training_only = {"buffer_size": 1, "rollout_steps": 1}
    settings = dict(description["settings"])
    settings |= {key: value for key, value in training_only.items() if key in settings}
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
    """Load an agent from an agent file, a checkpoint or the folder of a run.

    Raises:
        CheckpointError: The path holds no agent, or its file is damaged.
    """
    return agent_from(read_agent(path), device=device, seed=seed, name=str(path))
