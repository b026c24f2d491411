"""Adapter from a PettingZoo parallel environment to a Gymnasium environment.

The observation contains the observations of all agents and, per agent, the reward, the termination
and truncation flags and whether the agent is alive. All of these are therefore stored in the arena.
Infos are passed as Gymnasium infos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from shoal.errors import ObservationError, StepResultError
from shoal.pools._environments import wrapped

__all__ = [
    "AGENT_INFOS",
    "ALIVE",
    "REWARD",
    "TERMINATED",
    "TRUNCATED",
    "Agent",
    "Members",
    "TeamEnv",
    "empty_observation",
    "make_team",
    "members_of",
]

Agent = Any
"""The id of an agent: a string in most environments."""

REWARD, TERMINATED, TRUNCATED, ALIVE = range(4)
"""Rows of the array of numbers, which has one column per agent."""

AGENT_INFOS = "shoal.agents"
"""Key of the info with the infos of agents, each with the index of the agent."""

_ATTRIBUTE_METHODS = ("get_wrapper_attr", "has_wrapper_attr", "set_wrapper_attr")
"""Methods with which pools and frontends access attributes of the parallel environment."""

_AEC = (
    "{name} is an AEC environment, in which agents act one after the other: convert it with "
    "lambda: pettingzoo.utils.aec_to_parallel(make_env()), or use parallel_env of its module"
)


class Members(NamedTuple):
    """The possible agents of an environment, and their spaces in the same order."""

    agents: tuple[Agent, ...]
    observation_spaces: tuple[Space[Any], ...]
    action_spaces: tuple[Space[Any], ...]


class TeamEnv(gymnasium.Env[Any, Any]):
    """A parallel environment as a single-agent environment with joint observations and actions.

    An observation is a pair: a tuple with the observation of each of ``possible_agents``, and an
    array with the rows ``REWARD``, ``TERMINATED``, ``TRUNCATED`` and ``ALIVE``. The observation and
    reward of an agent that is not alive are zeros, and its actions are ignored. The reward is the
    sum of the agents' rewards.

    An episode ends when no agent is alive. It is truncated if at least one agent was truncated, and
    terminated otherwise.

    Args:
        env: The environment. Its ``possible_agents`` must contain all agents.
    """

    def __init__(self, env: Any) -> None:
        _check_parallel(env)
        self.env = env
        agents = tuple(env.possible_agents)
        self.members = Members(
            agents,
            tuple(map(env.observation_space, agents)),
            tuple(map(env.action_space, agents)),
        )
        self.metadata = dict(getattr(env, "metadata", {}))
        self.render_mode = getattr(env, "render_mode", None)
        numbers = spaces.Box(-np.inf, np.inf, (4, len(agents)), np.float64)
        observations = spaces.Tuple(self.members.observation_spaces)
        self.observation_space = spaces.Tuple((observations, numbers))
        self.action_space = spaces.Tuple(self.members.action_spaces)
        self._places = {agent: place for place, agent in enumerate(agents)}
        self._empty = list(map(empty_observation, self.members.observation_spaces))
        self._numbers = np.zeros(4 * len(agents))
        self._acting: list[int] = []
        self._was_truncated = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; seed and options are passed to the environment."""
        options_kwargs = {} if options is None else {"options": options}
        result = self.env.reset(seed=seed, **options_kwargs)
        observations, infos = _checked_tuple(result, 2, "reset")
        row, numbers = self._empty.copy(), [0.0] * self._numbers.size
        self._acting = []
        self._was_truncated = False
        self._add_agents(self.env.agents, observations, row, numbers)
        self._numbers[:] = numbers
        return self._observation(row), self._info(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment with the actions of the living agents."""
        agents, count = self.members.agents, len(self._empty)
        acts = {agents[place]: action[place] for place in self._acting}
        result = self.env.step(acts)
        observations, rewards, terminated, truncated, infos = _checked_tuple(result, 5, "step")
        row, numbers = self._empty.copy(), [0.0] * (4 * count)
        current_agents = self.env.agents
        remaining = []
        for place in self._acting:
            agent = agents[place]
            try:
                row[place] = observations[agent]
                numbers[place] = float(rewards[agent])
                is_terminated, is_truncated = terminated[agent], truncated[agent]
            except KeyError:
                _raise_missing_result(agent, observations, rewards, terminated, truncated)
            if is_terminated:
                numbers[TERMINATED * count + place] = 1.0
            if is_truncated:
                numbers[TRUNCATED * count + place] = 1.0
                self._was_truncated = True
            if is_terminated or is_truncated:
                continue
            if agent not in current_agents:
                raise StepResultError(
                    f"agent {agent!r} was removed from env.agents, but step returned neither a "
                    "termination nor a truncation for it"
                )
            numbers[ALIVE * count + place] = 1.0
            remaining.append(place)
        previous, self._acting = self._acting, remaining
        if len(current_agents) > len(remaining):  # some are new, or have ended and are still listed
            new = [agent for agent in current_agents if self._places.get(agent) not in previous]
            self._add_agents(new, observations, row, numbers)
        self._numbers[:] = numbers
        over = not self._acting
        return (
            self._observation(row),
            sum(numbers[:count]),
            over and not self._was_truncated,
            over and self._was_truncated,
            self._info(infos),
        )

    def _add_agents(
        self, agents: Any, observations: Mapping[Agent, Any], row: list[Any], numbers: list[float]
    ) -> None:
        """Add agents that start to act, at a reset or later in the episode."""
        for agent in agents:
            place = self._places.get(agent)
            if place is None:
                raise StepResultError(
                    f"agent {agent!r} is not in possible_agents: "
                    f"{', '.join(map(repr, self.members.agents))}"
                )
            if agent not in observations:
                raise ObservationError(f"agent {agent!r} is alive, but has no observation")
            row[place] = observations[agent]
            numbers[ALIVE * len(self._empty) + place] = 1.0
            self._acting.append(place)
        self._acting.sort()

    def _observation(self, row: list[Any]) -> tuple[Any, npt.NDArray[np.float64]]:
        return tuple(row), self._numbers.reshape(4, -1)

    def _info(self, infos: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the infos of agents with their indices, and infos that belong to no agent."""
        agent_infos, info = [], {}
        for name, value in infos.items():
            if isinstance(value, dict) and not value:
                continue
            place = self._places.get(name)
            if place is None:
                info[str(name)] = value
            else:
                agent_infos.append((place, value))
        return {**info, AGENT_INFOS: agent_infos} if agent_infos else info

    def render(self) -> Any:
        """Render the environment."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    # Attribute access is forwarded to the parallel environment.

    def get_wrapper_attr(self, name: str) -> Any:
        """Get an attribute of the parallel environment or its wrappers."""
        return getattr(self if name in _ATTRIBUTE_METHODS else self.env, name)

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the parallel environment or one of its wrappers has the attribute."""
        return hasattr(self.env, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute of the outermost wrapper or environment that has it.

        If none has it, the attribute is created on the environment if ``force`` is True.
        """
        layer = self.env
        while not _has_attribute(layer, name) and "env" in vars(layer):
            layer = layer.env
        if not force and not hasattr(layer, name):
            return False
        setattr(layer, name, value)
        return True


def make_team(make_env: Callable[[], Any], wrappers: tuple[Callable[[Any], Any], ...]) -> TeamEnv:
    """Create a parallel environment, wrap it and adapt it."""
    env = wrapped(make_env, wrappers)
    try:
        return TeamEnv(env)
    except BaseException:
        if hasattr(env, "close"):  # the function may have returned any object
            env.close()
        raise


def members_of(env: TeamEnv) -> Members:
    """Return the members of an environment; called by a pool where the environment is."""
    return env.members


def empty_observation(space: Space[Any]) -> Any:
    """Return the observation of an agent that is not alive: zeros, or their equivalent.

    >>> empty_observation(spaces.Dict(mask=spaces.MultiBinary(3), state=spaces.Box(1, 2, (2,))))
    {'mask': array([0, 0, 0], dtype=int8), 'state': array([0., 0.], dtype=float32)}
    """
    empty: Any = create_empty_array(space, 1)
    (observation,) = iterate(batch_space(space, 1), empty)
    return observation


def _check_parallel(env: Any) -> None:
    name = type(env).__name__
    if hasattr(env, "agent_iter"):
        raise TypeError(_AEC.format(name=name))
    if isinstance(env, gymnasium.Env):
        raise TypeError(f"{name} is a Gymnasium environment: use shoal.make instead")
    required = ("observation_space", "action_space", "reset", "step")
    missing = [method for method in required if not callable(getattr(env, method, None))]
    if missing:
        raise TypeError(f"expected a PettingZoo parallel environment, got {name} without {missing}")
    if not getattr(env, "possible_agents", None):
        raise TypeError(
            f"{name} has no possible_agents: a vector needs them to know the size of its batches"
        )


def _checked_tuple(result: Any, count: int, method: str) -> tuple[Any, ...]:
    if not isinstance(result, tuple) or len(result) != count:
        raise StepResultError(
            f"{method} of a parallel environment must return a tuple of {count} dicts, got "
            f"{result!r}"
        )
    return result


def _raise_missing_result(agent: Agent, *results: Mapping[Agent, Any]) -> NoReturn:
    names = ("observation", "reward", "termination", "truncation")
    (first, *_) = (name for name, result in zip(names, results, strict=True) if agent not in result)
    raise StepResultError(f"agent {agent!r} has acted, but step returned no {first} for it")


def _has_attribute(layer: Any, name: str) -> bool:
    """Whether an object has the attribute itself, as opposed to forwarding it."""
    return name in vars(layer) or hasattr(type(layer), name)
