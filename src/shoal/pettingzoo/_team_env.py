"""One PettingZoo parallel environment as one Gymnasium environment, for any pool to step.

What every agent is shown lies side by side in the observation, and with it what every agent is
told as numbers: its reward, whether it was terminated or truncated, whether it lives. So all of it
travels in the arena; infos travel as infos do, and only where there are any.
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
    "ALIVE",
    "OF_AGENTS",
    "REWARD",
    "TERMINATED",
    "TRUNCATED",
    "Agent",
    "Members",
    "TeamEnv",
    "make_team",
    "members_of",
    "nothing_of",
]

Agent = Any
"""What PettingZoo calls an agent by: a string, in most environments."""

REWARD, TERMINATED, TRUNCATED, ALIVE = range(4)
"""The rows of the numbers that agents are told, which have a column for each agent."""

OF_AGENTS = "shoal.agents"
"""The info of a team that holds those of its agents, each with the agent's place."""

_REACHING = ("get_wrapper_attr", "has_wrapper_attr", "set_wrapper_attr")
"""By these, pools and frontends reach what is in a team."""

_AEC = (
    "{name} is an AEC environment, in which agents act one after the other: make a parallel one "
    "of it, lambda: pettingzoo.utils.aec_to_parallel(make_env()), or use the parallel_env of its "
    "module"
)


class Members(NamedTuple):
    """Who may act in an environment, and the spaces of each, in the order of its agents."""

    agents: tuple[Agent, ...]
    observation_spaces: tuple[Space[Any], ...]
    action_spaces: tuple[Space[Any], ...]


class TeamEnv(gymnasium.Env[Any, Any]):
    """A parallel environment whose agents are observed, and act, as one.

    An observation is the pair of a tuple with what each of ``possible_agents`` is shown, and an
    array with the rows ``REWARD``, ``TERMINATED``, ``TRUNCATED`` and ``ALIVE``. An agent that is
    not there is shown zeros, earns nothing, and whatever it does is not passed on. The reward is
    the sum of the agents'.

    An episode lasts until no agent is left. It is terminated if every agent was; if any of them was
    truncated it is truncated, since then something of it was cut off.

    Args:
        env: The environment, whose agents must all be told of in ``possible_agents``.
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
        shown = spaces.Tuple(self.members.observation_spaces)
        self.observation_space = spaces.Tuple((shown, numbers))
        self.action_space = spaces.Tuple(self.members.action_spaces)
        self._places = {agent: place for place, agent in enumerate(agents)}
        self._nothing = list(map(nothing_of, self.members.observation_spaces))
        self._numbers = np.zeros(4 * len(agents))
        self._acting: list[int] = []
        self._was_cut = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the seed and the options are the environment's."""
        given = {} if options is None else {"options": options}
        observations, infos = _parts(self.env.reset(seed=seed, **given), 2, "reset")
        shown, numbers = self._nothing.copy(), [0.0] * self._numbers.size
        self._acting = []
        self._was_cut = False
        self._admit(self.env.agents, observations, shown, numbers)
        self._numbers[:] = numbers
        return self._observation(shown), self._info(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the agents that live act, each by its part of the action."""
        agents, count = self.members.agents, len(self._nothing)
        acts = {agents[place]: action[place] for place in self._acting}
        result = self.env.step(acts)
        observations, rewards, terminated, truncated, infos = _parts(result, 5, "step")
        shown, numbers = self._nothing.copy(), [0.0] * (4 * count)
        there = self.env.agents
        left = []
        for place in self._acting:
            agent = agents[place]
            try:
                shown[place] = observations[agent]
                numbers[place] = float(rewards[agent])
                ends, is_cut = terminated[agent], truncated[agent]
            except KeyError:
                _refuse_silence(agent, observations, rewards, terminated, truncated)
            if ends:
                numbers[TERMINATED * count + place] = 1.0
            if is_cut:
                numbers[TRUNCATED * count + place] = 1.0
                self._was_cut = True
            if ends or is_cut:
                continue
            if agent not in there:
                raise StepResultError(
                    f"agent {agent!r} is not among env.agents any more, but step has told neither "
                    "that it was terminated nor that it was truncated"
                )
            numbers[ALIVE * count + place] = 1.0
            left.append(place)
        known, self._acting = self._acting, left
        if len(there) > len(left):  # some are new, or have ended and are still listed
            others = [agent for agent in there if self._places.get(agent) not in known]
            self._admit(others, observations, shown, numbers)
        self._numbers[:] = numbers
        over = not self._acting
        return (
            self._observation(shown),
            sum(numbers[:count]),
            over and not self._was_cut,
            over and self._was_cut,
            self._info(infos),
        )

    def _admit(
        self, agents: Any, observations: Mapping[Agent, Any], shown: list[Any], numbers: list[float]
    ) -> None:
        """Let agents act from now on, that is, at the beginning or when they join later."""
        for agent in agents:
            place = self._places.get(agent)
            if place is None:
                raise StepResultError(
                    f"agent {agent!r} is none of the possible agents, "
                    f"{', '.join(map(repr, self.members.agents))}"
                )
            if agent not in observations:
                raise ObservationError(f"agent {agent!r} lives, but no observation of it came")
            shown[place] = observations[agent]
            numbers[ALIVE * len(self._nothing) + place] = 1.0
            self._acting.append(place)
        self._acting.sort()

    def _observation(self, shown: list[Any]) -> tuple[Any, npt.NDArray[np.float64]]:
        return tuple(shown), self._numbers.reshape(4, -1)

    def _info(self, infos: Mapping[Any, Any]) -> dict[str, Any]:
        """The infos of agents by their places, and what is told of none of them."""
        told, info = [], {}
        for name, value in infos.items():
            if isinstance(value, dict) and not value:
                continue
            place = self._places.get(name)
            if place is None:
                info[str(name)] = value
            else:
                told.append((place, value))
        return {**info, OF_AGENTS: told} if told else info

    def render(self) -> Any:
        """What the environment renders."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    # Whoever asks for an attribute of an environment means the one that is in here.

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute of the parallel environment, or of the wrappers around it."""
        return getattr(self if name in _REACHING else self.env, name)

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the parallel environment, or one of the wrappers around it, has it."""
        return hasattr(self.env, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute where it is: in the outermost wrapper that has it, or in the innermost.

        Where nothing has it, the environment itself gets it, if that is wanted by ``force``.
        """
        layer = self.env
        while not _has_itself(layer, name) and "env" in vars(layer):
            layer = layer.env
        if not force and not hasattr(layer, name):
            return False
        setattr(layer, name, value)
        return True


def make_team(make_env: Callable[[], Any], wrappers: tuple[Callable[[Any], Any], ...]) -> TeamEnv:
    """Make a parallel environment, put wrappers around it, and make it a team."""
    env = wrapped(make_env, wrappers)
    try:
        return TeamEnv(env)
    except BaseException:
        if hasattr(env, "close"):  # it may be anything
            env.close()
        raise


def members_of(env: TeamEnv) -> Members:
    """Who may act in this environment; a function that a pool can send to where it is."""
    return env.members


def nothing_of(space: Space[Any]) -> Any:
    """What an agent is shown that is not there: zeros, or what stands for them in its space.

    >>> nothing_of(spaces.Dict(seen=spaces.Box(1, 2, (2,)), action_mask=spaces.MultiBinary(3)))
    {'action_mask': array([0, 0, 0], dtype=int8), 'seen': array([0., 0.], dtype=float32)}
    """
    empty: Any = create_empty_array(space, 1)
    (nothing,) = iterate(batch_space(space, 1), empty)
    return nothing


def _check_parallel(env: Any) -> None:
    name = type(env).__name__
    if hasattr(env, "agent_iter"):
        raise TypeError(_AEC.format(name=name))
    if isinstance(env, gymnasium.Env):
        raise TypeError(f"{name} is a Gymnasium environment: shoal.make makes vectors of those")
    asked = ("observation_space", "action_space", "reset", "step")
    missing = [method for method in asked if not callable(getattr(env, method, None))]
    if missing:
        raise TypeError(f"expected a PettingZoo parallel environment, got {name} without {missing}")
    if not getattr(env, "possible_agents", None):
        raise TypeError(
            f"{name} does not say in possible_agents which agents there can be, so there is no "
            "telling how large a batch is"
        )


def _parts(result: Any, count: int, method: str) -> tuple[Any, ...]:
    if not isinstance(result, tuple) or len(result) != count:
        raise StepResultError(
            f"{method} of a parallel environment returns a tuple of {count} dicts, got {result!r}"
        )
    return result


def _refuse_silence(agent: Agent, *results: Mapping[Agent, Any]) -> NoReturn:
    names = ("observation", "reward", "termination", "truncation")
    (first, *_) = (name for name, result in zip(names, results, strict=True) if agent not in result)
    raise StepResultError(f"agent {agent!r} has acted, but step has returned no {first} of it")


def _has_itself(layer: Any, name: str) -> bool:
    """Whether this has the attribute, and does not only pass on that of what it wraps."""
    return name in vars(layer) or hasattr(type(layer), name)
