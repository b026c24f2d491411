"""Configs of training runs that never end."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.train._config import Config, load_config, parse_config

__all__ = ["HIDDEN", "NEVER", "bundled_endless", "collecting"]

NEVER = 10**15
"""More steps or episodes than any run does."""

HIDDEN = [256, 256]
"""The widths of the hidden layers of all networks that are compared."""


def collecting() -> Config:
    """Return a config of DDDQN without updates, in hockey against the weak opponent."""
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


def bundled_endless(name: str) -> Config:
    """Return a bundled config with only its first phase and without checkpoints."""
    raw: dict[str, Any] = msgspec.to_builtins(load_config(name))
    phase = raw["curriculum"]["phases"][0]
    phase["steps" if phase["episodes"] is None else "episodes"] = NEVER
    raw["curriculum"]["phases"] = [phase]
    raw["training"]["checkpoint_save_freq"] = NEVER
    return parse_config(raw)
