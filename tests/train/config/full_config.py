"""A config with every field, and ways to change and to parse it."""

import copy

import pytest

from shoal.errors import ConfigError
from shoal.train._config import parse_config

HOCKEY = "shoal/Hockey-v0"

FULL = {
    "description": "A config with every field.",
    "task": {"id": HOCKEY, "arguments": {}},
    "num_envs": 4,
    "seed": 3,
    "curriculum": {
        "phases": [
            {"name": "first", "steps": 1000},
            {
                "name": "second",
                "episodes": 10,
                "environment": {
                    "mixture": [
                        {"mode": "NORMAL", "weight": 1},
                        {"mode": "TRAIN_DEFENSE", "weight": 0.5},
                    ],
                    "keep_mode": False,
                },
                "opponent": {
                    "type": "weighted_mixture",
                    "opponents": [
                        {"type": "basic_weak", "weight": 0.25},
                        {
                            "type": "self_play",
                            "weight": 1,
                            "checkpoint": "some.agent",
                            "deterministic": False,
                        },
                        {"type": "league"},
                    ],
                },
                "reward_shaping": {
                    "N": 3,
                    "K": 4,
                    "CLOSENESS_START": 2.0,
                    "TOUCH_START": 1,
                    "CLOSENESS_FINAL": 1.0,
                    "TOUCH_FINAL": 0.0,
                    "DIRECTION_FINAL": 1.0,
                },
                "clear_buffer": True,
            },
        ]
    },
    "hyperparameters": {"learning_rate": 0.001},
    "training": {
        "max_episode_steps": 250,
        "warmup_steps": 100,
        "updates_per_step": 0.5,
        "train_freq": 2,
        "reward_scale": 0.1,
        "checkpoint_save_freq": 1000,
        "checkpoints_kept": 2,
        "checkpoint_replay": False,
        "eval_freq_steps": 500,
        "eval_num_games": 20,
        "eval_opponents": ["weak", "strong"],
        "video_episodes": 0,
        "stop_at_reward": 5,
    },
    "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8]}},
    "league": {
        "snapshot_every": 10,
        "size": 5,
        "scripted": ["weak"],
        "matchmaking": "even",
        "latest_share": 0.5,
        "half_life": None,
        "exploiter_share": 0.25,
        "exploiter_win_rate": 0.6,
        "exploiter_window": 20,
        "exploiter_max_episodes": 100,
    },
}

FREE = ("hyperparameters", "arguments")
"""Fields whose content the schema does not describe."""

PHASE = ("curriculum", "phases", 1)
"""The path of the second phase."""


def walk(node, path=()):
    """Yield the path of every named field."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            if key not in FREE:
                yield from walk(value, (*path, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, (*path, number))


FIELDS = list(walk(FULL))


def path_text(path):
    """Return a path as error messages write it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def value_at(node, path):
    for part in path:
        node = node[part]
    return node


def changed(path, value):
    """Return the full config with one changed value."""
    raw = copy.deepcopy(FULL)
    value_at(raw, path[:-1])[path[-1]] = value
    return raw


def renamed(path, name):
    """Return the full config with one renamed field."""
    raw = copy.deepcopy(FULL)
    node = value_at(raw, path[:-1])
    fields = {name if key == path[-1] else key: value for key, value in node.items()}
    node.clear()
    node.update(fields)
    return raw


def error_of(raw):
    """Return the message of the error that a config raises."""
    with pytest.raises(ConfigError) as caught:
        parse_config(raw)
    return str(caught.value)
