"""Environments of the older form as environments of today, and the other way round."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces

__all__ = ["ModernEnv", "OldEnv", "modern", "old_done"]

TRUNCATED = "TimeLimit.truncated"


class OldEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of today behind the interface of OpenAI Gym.

    ``reset`` returns the observation alone, ``step`` returns (observation, reward, done, info), and
    the seed is given by ``seed``.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._next_seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the next ``reset``."""
        self._next_seed = seed
        return [seed]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, and return its first observation."""
        if seed is None:
            seed, self._next_seed = self._next_seed, None
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation

    def step(self, action: Any) -> tuple[Any, Any, bool, dict[str, Any]]:  # type: ignore[override]
        """Step the environment, and return (observation, reward, done, info)."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        done, mark = old_done(bool(terminated), bool(truncated))
        return observation, reward, done, {**info, **mark}

    def render(self, mode: str | None = None) -> Any:
        """Render in the mode that the environment was made with."""
        if mode is not None and mode != self.render_mode:
            raise ValueError(
                f"cannot render in mode {mode!r}: the environment was made with "
                f"render_mode={self.render_mode!r}; pass render_mode={mode!r} to make"
            )
        return self.env.render()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.env.get_wrapper_attr(name)


class ModernEnv(gymnasium.Env[Any, Any]):
    """An environment of the older form, or of today's, behind today's interface."""

    def __init__(self, old: Any) -> None:
        self.old = old
        self.observation_space = old.observation_space
        self.action_space = old.action_space
        self.metadata = getattr(old, "metadata", {})
        self.render_mode = getattr(old, "render_mode", None)
        self._reset_takes = _keywords(old.reset, ("seed", "options"))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; an environment whose ``reset`` takes no seed is seeded by ``seed``."""
        given = {"seed": seed, "options": options}
        if seed is not None and "seed" not in self._reset_takes and hasattr(self.old, "seed"):
            self.old.seed(seed)
        result = self.old.reset(**{name: given[name] for name in self._reset_takes})
        return result if self._has_info(result) else (result, {})

    def _has_info(self, result: Any) -> bool:
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            return False
        # An observation that is itself a pair with a dict: the space tells which of the two it is.
        is_tuple_space = isinstance(self.observation_space, spaces.Tuple)
        return not (is_tuple_space and result in self.observation_space)

    def step(self, action: Any) -> Any:
        """Step the environment; four values become five."""
        result = self.old.step(action)
        if len(result) != 4:
            return result
        observation, reward, done, info = result
        truncated = bool(done and info.get(TRUNCATED, False))
        return observation, reward, bool(done) and not truncated, truncated, info

    def render(self) -> Any:
        """Render the environment."""
        return self.old.render()

    def close(self) -> None:
        """Close the environment, if it can be closed."""
        close = getattr(self.old, "close", None)
        if close is not None:
            close()

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the environment has this attribute."""
        try:
            self.get_wrapper_attr(name)
        except AttributeError:
            return False
        return True

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute of the environment."""
        if name == "set_wrapper_attr":
            return self.set_wrapper_attr
        if isinstance(self.old, gymnasium.Env):
            return self.old.get_wrapper_attr(name)
        return getattr(self.old, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:  # noqa: ARG002
        """Set an attribute of the environment."""
        if isinstance(self.old, gymnasium.Env):
            return bool(self.old.set_wrapper_attr(name, value))
        setattr(self.old, name, value)
        return True


def modern(factory: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    """Build an environment of either form as one of today's."""
    env = factory()
    if isinstance(env, OldEnv):
        return env.env
    try:
        return ModernEnv(env)
    except BaseException:
        env.close()
        raise


def old_done(terminated: bool, truncated: bool) -> tuple[bool, dict[str, bool]]:
    """The one flag for the end of an episode, and the mark that a time limit left in the info."""
    return terminated or truncated, {TRUNCATED: not terminated} if truncated else {}


def _keywords(function: Callable[..., Any], names: tuple[str, ...]) -> list[str]:
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return [name for name in names if takes_any or name in parameters]
