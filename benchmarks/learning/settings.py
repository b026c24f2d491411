"""How learning is measured."""

from __future__ import annotations

from dataclasses import dataclass

from shoal._bench.runner import Settings

__all__ = ["LearningSettings"]


@dataclass(frozen=True)
class LearningSettings(Settings):
    """How learning is measured, and on what."""

    rounds: int = 7
    seconds: float = 1.0
    """How long a contender is measured in one round. What cannot be divided, such as a rollout of
    PPO and its updates, is finished."""
    device: str = "cpu"
    """Where agents compute, ``cpu`` or ``cuda``; environments are on the CPU."""
    ppo_envs: int | None = None
    """In how many environments PPO learns; by default as many as suit the device."""
    steps: int = 1600
    """Environment steps of a round, where 1, 4 and 8 environments are compared."""

    @property
    def num_ppo_envs(self) -> int:
        """In how many environments PPO learns."""
        return self.ppo_envs or (8192 if self.device == "cuda" else 512)
