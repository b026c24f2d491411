"""Agents: what they are, how they act, and how they learn."""

from shoal.train.agents.actions import AgentSpaces
from shoal.train.agents.base import Agent, Step
from shoal.train.agents.dddqn import DDDQN
from shoal.train.agents.making import AGENTS, agent_from, load_agent, make_agent
from shoal.train.agents.ppo import PPO
from shoal.train.agents.sac import SAC

__all__ = [
    "AGENTS",
    "DDDQN",
    "PPO",
    "SAC",
    "Agent",
    "AgentSpaces",
    "Step",
    "agent_from",
    "load_agent",
    "make_agent",
]
