"""The agents: DDDQN, SAC and PPO."""

from shoal.train._agents.actions import AgentSpaces
from shoal.train._agents.base import Agent, Step
from shoal.train._agents.dddqn import DDDQN
from shoal.train._agents.factory import AGENTS, agent_from, load_agent, make_agent
from shoal.train._agents.ppo import PPO
from shoal.train._agents.sac import SAC

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
