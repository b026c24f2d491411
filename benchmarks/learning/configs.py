"""The configs of the training runs that are measured: none of them comes to an end."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.train._config import Config, load_config, parse_config

__all__ = ["HIDDEN", "NEVER", "collecting", "shipped_endless"]

NEVER = 10**15
"""More steps, or episodes, than there will be."""

HIDDEN = [256, 256]
"""The widths of the hidden layers wherever networks are compared."""


def collecting() -> Config:
    """DDDQN acts and remembers, and learns nothing; it plays hockey against the weak opponent."""
    return parse_config(
        {
            "curriculum": {
                "phases": [
                    {
                        "name": "match",
                        "episodes": NEVER,
                        "environment": {"mode": "NORMAL"},
                        "opponent": {"type": "basic_weak"},
                    }
                ]
            },
            "training": {
                "warmup_steps": 0,
                "updates_per_step": 0,
                "checkpoint_save_freq": NEVER,
            },
            "agent": {
                "type": "DDDQN",
                "hyperparameters": {"hidden_dim": HIDDEN, "buffer_size": 200_000},
            },
        }
    )


def shipped_endless(name: str) -> Config:
    """A config that comes along, with its first phase alone, and without checkpoints."""
    raw: dict[str, Any] = msgspec.to_builtins(load_config(name))
    phase = raw["curriculum"]["phases"][0]
    phase["steps" if phase["episodes"] is None else "episodes"] = NEVER
    raw["curriculum"]["phases"] = [phase]
    raw["training"]["checkpoint_save_freq"] = NEVER
    return parse_config(raw)
