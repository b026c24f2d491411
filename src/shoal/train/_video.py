"""Videos of what an agent does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec

from shoal._wrapper_core.video import write_video
from shoal.kernels import Kernel
from shoal.train._agents import Agent, load_agent
from shoal.train._config.loading import HOCKEY
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks.flattening import flattening
from shoal.train._tasks.sources import EnvSource, name_of, open_vector

__all__ = ["film"]

_MOST_FRAMES = 3000
_DEFAULT_FPS = 30


def film(
    agent: Agent,
    path: str | Path,
    env: EnvSource,
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
        env: What it acts in.
        arguments: Given to :func:`shoal.make`, or :func:`shoal.connect`.
        opponent: In hockey: ``weak``, ``strong``, or the file of an agent.
        episodes: How many.
        seed: Of the environment.
        keep_mode: In hockey: whether rackets keep the puck.
    """
    path = Path(path)
    is_hockey = env == HOCKEY
    options: dict[str, Any] = {"autoreset_mode": "SameStep", **(arguments or {})}
    if isinstance(env, str | EnvSpec | Kernel):  # functions have said what they make
        options["render_mode"] = "rgb_array"
    other: Agent | None = None
    if is_hockey:
        if opponent in SCRIPTED:
            options["opponent"] = opponent
        else:
            other = load_agent(opponent, agent.device)
    frames: list[npt.NDArray[np.uint8]] = []
    with open_vector(env, 1, **options) as envs:
        _, flatten = flattening(envs.single_observation_space)
        if is_hockey:
            envs.set_attr("keep_mode", keep_mode)
        seen, _ = envs.reset(seed=seed)
        while episodes and len(frames) < _MOST_FRAMES:
            pictures = envs.render()
            if pictures is None or pictures[0] is None:
                raise ValueError(f"{name_of(env)} gives no pictures: make it with a render_mode")
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
