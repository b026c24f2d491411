"""Videos of agents."""

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
from shoal.train._tasks.flattening import make_flatten
from shoal.train._tasks.sources import EnvSource, env_name, open_vector

__all__ = ["film"]

_MAX_FRAMES = 3000
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
    """Record a video of an agent's episodes.

    Args:
        agent: The agent.
        path: The MP4 file to write.
        env: The environment.
        arguments: Keyword arguments for :func:`shoal.make` or :func:`shoal.connect`.
        opponent: In hockey: ``weak``, ``strong``, or an agent file.
        episodes: Number of episodes.
        seed: The seed of the environment.
        keep_mode: In hockey: whether rackets can hold the puck.

    Returns:
        ``path``.

    Raises:
        ValueError: If the environment does not render images.
    """
    path = Path(path)
    is_hockey = env == HOCKEY
    options: dict[str, Any] = {"autoreset_mode": "SameStep", **(arguments or {})}
    if isinstance(env, str | EnvSpec | Kernel):  # functions choose their render mode themselves
        options["render_mode"] = "rgb_array"
    opponent_agent: Agent | None = None
    if is_hockey:
        if opponent in SCRIPTED:
            options["opponent"] = opponent
        else:
            opponent_agent = load_agent(opponent, agent.device)
    frames: list[npt.NDArray[np.uint8]] = []
    with open_vector(env, 1, **options) as envs:
        _, flatten = make_flatten(envs.single_observation_space)
        if is_hockey:
            envs.set_attr("keep_mode", keep_mode)
        observations, _ = envs.reset(seed=seed)
        while episodes and len(frames) < _MAX_FRAMES:
            images = envs.render()
            if images is None or images[0] is None:
                raise ValueError(
                    f"{env_name(env)} does not render images: create it with a render_mode"
                )
            frames.append(np.asarray(images[0]))
            if is_hockey:
                actions = np.zeros((1, 8), np.float32)
                actions[:, :4] = agent.act_in_environment(observations[:, 0])
                if opponent_agent is not None:
                    actions[:, 4:] = opponent_agent.act_in_environment(observations[:, 1])
            else:
                actions = agent.act_in_environment(flatten(observations))
            observations, _, terminated, truncated, _ = envs.step(actions)
            episodes -= int(terminated[0] or truncated[0])
        fps = float(envs.metadata.get("render_fps", _DEFAULT_FPS))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(path, frames, fps)
    return path
