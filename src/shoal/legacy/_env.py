"""Conversion between the environment interfaces of OpenAI Gym and Gymnasium."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces

__all__ = ["ModernEnv", "OldEnv", "make_modern_env", "old_done"]

TRUNCATED = "TimeLimit.truncated"


class OldEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment with the interface of OpenAI Gym.

    ``reset`` returns only the observation, ``step`` returns (observation, reward, done, info), and
    ``seed`` sets the seed.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._next_seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the next ``reset``."""
        self._next_seed = seed
        return [seed]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset the environment, and return its first observation."""
        if seed is None:
            seed, self._next_seed = self._next_seed, None
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation

    def step(self, action: Any) -> tuple[Any, Any, bool, dict[str, Any]]:  # type: ignore[override]
        """Step the environment, and return (observation, reward, done, info)."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        done, time_limit_info = old_done(bool(terminated), bool(truncated))
        return observation, reward, done, {**info, **time_limit_info}

    def render(self, mode: str | None = None) -> Any:
        """Render in the mode with which the environment was made."""
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
    """An environment of either library with the interface of Gymnasium."""

    def __init__(self, old: Any) -> None:
        self.old = old
        self.observation_space = old.observation_space
        self.action_space = old.action_space
        self.metadata = getattr(old, "metadata", {})
        self.render_mode = getattr(old, "render_mode", None)
        self._reset_parameters = _accepted_keywords(old.reset, ("seed", "options"))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; if its ``reset`` accepts no seed, call its ``seed`` before."""
        arguments = {"seed": seed, "options": options}
        if seed is not None and "seed" not in self._reset_parameters and hasattr(self.old, "seed"):
            self.old.seed(seed)
        result = self.old.reset(**{name: arguments[name] for name in self._reset_parameters})
        return result if self._has_info(result) else (result, {})

    def _has_info(self, result: Any) -> bool:
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            return False
        # The result may also be an observation that is itself a pair with a dict.
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
        """Close the environment if it has a ``close`` method."""
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
        """Read an attribute of the environment."""
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


def make_modern_env(factory: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    """Make an environment of either library, and convert it to Gymnasium's interface."""
    env = factory()
    if isinstance(env, OldEnv):
        return env.env
    try:
        return ModernEnv(env)
    except BaseException:
        env.close()
        raise


def old_done(terminated: bool, truncated: bool) -> tuple[bool, dict[str, bool]]:
    """Return OpenAI Gym's ``done`` flag and the info that its ``TimeLimit`` wrapper adds."""
    return terminated or truncated, {TRUNCATED: not terminated} if truncated else {}


def _accepted_keywords(function: Callable[..., Any], names: tuple[str, ...]) -> list[str]:
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return [name for name in names if takes_any or name in parameters]
