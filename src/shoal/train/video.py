"""Videos of what an agent does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import shoal
from shoal.train.agents import Agent, load_agent
from shoal.train.config.loading import HOCKEY
from shoal.train.scripted import SCRIPTED
from shoal.train.tasks.flattening import flattening
from shoal.wrapping.video import write_video

__all__ = ["film"]

_MOST_FRAMES = 3000
_DEFAULT_FPS = 30


def film(
    agent: Agent,
    path: str | Path,
    name: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    opponent: str = "strong",
    episodes: int = 1,
    seed: int = 0,
    keep_mode: bool = True,
) -> Path:
    """Film episodes of an agent.

    Args:
        agent: Who acts.
        path: The video, an MP4 file.
        name: The id of the environment.
        arguments: Given to :func:`shoal.make`.
        opponent: In hockey: ``weak``, ``strong``, or the file of an agent.
        episodes: How many.
        seed: Of the environment.
        keep_mode: In hockey: whether rackets keep the puck.
    """
    path = Path(path)
    is_hockey = name == HOCKEY
    options = dict(arguments or {})
    other: Agent | None = None
    if is_hockey:
        if opponent in SCRIPTED:
            options["opponent"] = opponent
        else:
            other = load_agent(opponent, agent.device)
    frames: list[npt.NDArray[np.uint8]] = []
    with shoal.make(name, 1, render_mode="rgb_array", autoreset_mode="SameStep", **options) as envs:
        _, flatten = flattening(envs.single_observation_space)
        if is_hockey:
            envs.set_attr("keep_mode", keep_mode)
        seen, _ = envs.reset(seed=seed)
        while episodes and len(frames) < _MOST_FRAMES:
            pictures = envs.render()
            assert pictures is not None  # there is a render mode
            frames.append(np.asarray(pictures[0]))
            if is_hockey:
                actions = np.zeros((1, 8), np.float32)
                actions[:, :4] = agent.act_in_environment(seen[:, 0])
                if other is not None:
                    actions[:, 4:] = other.act_in_environment(seen[:, 1])
            else:
                actions = agent.act_in_environment(flatten(seen))
            seen, _, terminated, truncated, _ = envs.step(actions)
            episodes -= int(terminated[0] or truncated[0])
        fps = float(envs.metadata.get("render_fps", _DEFAULT_FPS))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(path, frames, fps)
    return path
