"""Draw timelines of the autoreset modes from the results of a vector.

``python docs/building/timelines.py`` writes ``docs/pictures/autoreset-*.svg``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import shoal

PICTURES = Path(__file__).parents[1] / "pictures"
MODES = {"next-step": "NextStep", "same-step": "SameStep", "disabled": "Disabled"}

_EPISODES = "abc"
_LENGTH = 3
_CALLS = 6
_LABELS = ("action", "observation", "reward", "terminated", "infos")
_LEFT, _WIDTH, _HEAD, _HEIGHT = 104, 116, 44, 34

_STYLE = """
  svg { --ink: #24292f; --faint: #8c959f; --first: #0f8b8d; --second: #d9762b; --on: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --faint: #7d8590; --first: #2fb8ba; --second: #f0984f; --on: #0d1117; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
  .name { text-anchor: start; fill: var(--faint); }
  .faint { fill: var(--faint); font-style: italic; }
  .call { font: 13px ui-monospace, monospace; }
  .small { font-size: 12px; }
  .a { fill: var(--first); } .b { fill: var(--second); }
  .on { fill: var(--on); font-weight: 600; }
  .line { stroke: var(--faint); stroke-width: 1; }
"""


class Counting(gym.Env[Any, Any]):
    """Observes the number of its episode and of the step in it; an episode has three steps."""

    observation_space = spaces.Box(0, 100, (2,), np.int64)
    action_space = spaces.Discrete(9)

    def __init__(self) -> None:
        self._episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start the next episode."""
        super().reset(seed=seed, options=options)
        self._episode, self._time = self._episode + 1, 0
        return self._observed(), {}

    def step(self, action: Any) -> Any:
        """Count the step, and return the action in the info."""
        self._time += 1
        return self._observed(), float(self._time), self._time == _LENGTH, False, {"saw": action}

    def _observed(self) -> Any:
        return np.array([self._episode, self._time])


@dataclass
class Call:
    """A call, the action, and the results of one slot."""

    name: str
    action: str = ""
    is_ignored: bool = False
    observation: str = ""
    reward: str = ""
    terminated: str = ""
    infos: list[str] = field(default_factory=list)


def calls(mode: str) -> list[Call]:
    """Reset and step a vector of one slot. In disabled mode, reset it after each episode."""
    results, finished = [], False
    with shoal.make(Counting, 1, backend="inline", autoreset_mode=mode, statistics=True) as envs:
        observations, _ = envs.reset()
        results.append(Call("reset()", observation=_name(observations[0])))
        action = 0
        while len(results) < _CALLS:
            if finished and mode == "Disabled":
                mask = np.array([True])
                observations, _ = envs.reset(options={"reset_mask": mask})
                results.append(Call("reset(mask)", observation=_name(observations[0])))
                finished = False
                continue
            action += 1
            observations, rewards, terminated, truncated, infos = envs.step([action])
            finished = bool(terminated[0] or truncated[0])
            final = infos.get("final_info", infos)
            call = Call(f"step({action})", str(action), "saw" not in final)
            call.observation = _name(observations[0])
            call.reward = f"{rewards[0]:g}"
            call.terminated = str(bool(terminated[0]))
            if "final_obs" in infos:
                call.infos.append(f"final_obs: {_name(infos['final_obs'][0])}")
            if "episode" in infos:
                call.infos.append(f"episode: r = {infos['episode']['r'][0]:g}")
            results.append(call)
        return results


def _name(observation: Any) -> str:
    episode, time = observation
    return f"{_EPISODES[episode]}{time}"


def draw(mode: str) -> str:
    """Return the timeline of a mode as SVG."""
    columns = calls(mode)
    width = _LEFT + _WIDTH * len(columns)
    height = _HEAD + _HEIGHT * len(_LABELS) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>{_STYLE}</style>",
        *(_text(4, _row(row), label, "name") for row, label in enumerate(_LABELS)),
        f'<line class="line" x1="{_LEFT}" x2="{width}" y1="{_HEAD - 8}" y2="{_HEAD - 8}"/>',
    ]
    for column, call in enumerate(columns):
        parts += _column(_LEFT + _WIDTH * column + _WIDTH // 2, call)
    return "\n".join([*parts, "</svg>\n"])


def _column(x: int, call: Call) -> list[str]:
    parts = [_text(x, 22, call.name, "call")]
    if call.action:
        ignored = call.is_ignored
        parts.append(_text(x, _row(0), "ignored" if ignored else call.action, "faint" * ignored))
    parts += [
        f'<rect class="{call.observation[0]}" x="{x - 26}" y="{_row(1) - 18}" '
        'width="52" height="26" rx="6"/>',
        _text(x, _row(1), call.observation, "on"),
    ]
    if call.action:
        parts += [_text(x, _row(2), call.reward), _text(x, _row(3), call.terminated)]
    parts += [_text(x, _row(4) + 18 * k, info, "small") for k, info in enumerate(call.infos)]
    return parts


def _row(number: int) -> int:
    return _HEAD + _HEIGHT * number + 18


def _text(x: int, y: int, text: str, css_class: str = "") -> str:
    attribute = f' class="{css_class}"' if css_class else ""
    return f'<text{attribute} x="{x}" y="{y}">{text}</text>'


def main() -> None:
    """Write the timelines of all modes."""
    for name, mode in MODES.items():
        (PICTURES / f"autoreset-{name}.svg").write_text(draw(mode))


if __name__ == "__main__":
    main()
