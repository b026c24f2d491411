"""The base class of all agents, and the format of agent files."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from shoal.errors import CheckpointError
from shoal.train._agents.actions import AgentSpaces, ContinuousActions, DiscreteActions
from shoal.train._agents.compilation import CompiledFunction, resolve_compilation
from shoal.train._config.agent_settings import AgentSettings
from shoal.train._files import read_file, write_file

__all__ = ["RUN_AGENTS", "Agent", "Step", "read_agent"]

Array = npt.NDArray[Any]

_FILE_TYPE = "agent"

RUN_AGENTS = ("best.agent", "final.agent")
"""The agent files in the folder of a run, the preferred one first."""


class Step(NamedTuple):
    """A step of all slots, as an agent learns from it."""

    observations: Array
    actions: Array
    """As returned by ``explore`` or ``random_actions``."""
    rewards: Array
    next_observations: Array
    """The final observation where an episode ended, not the first one of the next episode."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]


class Agent(ABC):
    """A learning agent that acts in all slots of a vector at once.

    Args:
        spaces: The observations and actions of the agent.
        settings: The hyperparameters; the defaults if omitted.
        num_slots: The number of slots that the agent trains in.
        device: The device of the networks and of the training data.
        seed: The seed of all random numbers of the agent.
    """

    kind: ClassVar[str]
    settings_type: ClassVar[type[AgentSettings]]
    is_on_policy: ClassVar[bool] = False

    network_settings: ClassVar[tuple[str, ...]] = ("hidden_dim", "activation")
    """The settings that must be equal for an agent to load the networks of another one."""

    network: nn.Module
    """All parameters that an agent file holds."""
    actions: DiscreteActions | ContinuousActions
    """Converts the agent's actions to those of the environments."""

    def __init__(
        self,
        spaces: AgentSpaces,
        settings: AgentSettings | None = None,
        *,
        num_slots: int = 1,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ) -> None:
        self.spaces = spaces
        self.settings: Any = self.settings_type() if settings is None else settings
        self.num_slots = num_slots
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self._metric_sums = torch.zeros(len(self.metric_names), device=self.device)
        self._metric_updates = 0
        # Networks are initialized on the CPU, so only the CPU's generator is forked.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self._build()

        is_discrete = isinstance(self.actions, DiscreteActions)
        shape = (num_slots,) if is_discrete else (num_slots, self.actions.size)  # type: ignore[union-attr]
        dtype = torch.int64 if is_discrete else torch.float32
        # The input and output of `_explore`, which may be recorded as a CUDA graph.
        self._current_observations = torch.zeros(
            num_slots, spaces.observation_size, device=self.device
        )
        self._chosen_actions = torch.zeros(shape, dtype=dtype, device=self.device)
        self._run_explore = self._compiled(self._explore, is_small=True)

    metric_names: ClassVar[tuple[str, ...]] = ()
    """The metrics of an update, in the order of ``_metric_sums``."""

    def _compiled(
        self, function: Callable[[], None], *, is_small: bool = False
    ) -> CompiledFunction:
        """Return a function that runs as the ``compile`` setting says.

        Small functions may be recorded as CUDA graphs, but are not compiled by inductor.
        """
        compilation = resolve_compilation(self.settings.compile, self.device)
        if compilation == "inductor" and is_small:
            compilation = "graph"
        return CompiledFunction(function, compilation, self.device, self.generator)

    @abstractmethod
    def _build(self) -> None:
        """Create the networks and their optimizers."""

    @abstractmethod
    def _choose(self, states: Tensor, deterministic: Tensor | bool) -> Tensor:
        """Return actions for these states; ``deterministic`` may be a mask over the rows."""

    @abstractmethod
    def _state_values(self, states: Tensor) -> Tensor:
        """Return the estimated value of each state."""

    @abstractmethod
    def _explore(self) -> None:
        """Choose actions for ``_current_observations`` and write them to ``_chosen_actions``."""

    def explore(self, observations: Array) -> Array:
        """Return the training actions of all slots, exploration included.

        Args:
            observations: One row per slot, in the order of the slots.
        """
        checked = self._checked_states(observations)
        if len(checked) != self.num_slots:
            raise ValueError(
                f"expected {self.num_slots} observations, one per slot, got {len(checked)}"
            )
        self._current_observations.copy_(torch.from_numpy(checked))
        with torch.no_grad():
            self._run_explore()
        actions: Array = self._chosen_actions.cpu().numpy()
        # On the CPU this is a view of a tensor that the next call overwrites.
        return actions.copy() if self.device.type == "cpu" else actions

    @abstractmethod
    def remember(self, step: Step) -> None:
        """Store the step that followed the last actions."""

    @abstractmethod
    def learn(self, due: int) -> int:
        """Update the networks, and return the number of gradient steps made.

        Args:
            due: The number of gradient steps to make. On-policy agents ignore it and update when
                their rollout is full.
        """

    def act(self, state: npt.ArrayLike, deterministic: bool = False) -> Any:
        """Return an action for one state: an int if actions are discrete, otherwise an array.

        Args:
            state: The observation, a vector.
            deterministic: Whether to return the best action instead of exploring.
        """
        action = self.act_batch(np.asarray(state, np.float32)[None], deterministic)[0]
        return int(action) if isinstance(self.actions, DiscreteActions) else action

    def act_batch(
        self, states: npt.ArrayLike, deterministic: bool | npt.NDArray[np.bool_] = False
    ) -> Array:
        """Return actions for many states from one forward pass.

        Args:
            states: Observations of the shape (rows, observation size).
            deterministic: Whether to return the best actions instead of exploring; an array selects
                this for each row.
        """
        mask: Tensor | bool
        if isinstance(deterministic, np.ndarray):
            mask = torch.from_numpy(deterministic).to(self.device)
        else:
            mask = bool(deterministic)
        with torch.no_grad():
            return self._choose(self._to_tensor(states), mask).cpu().numpy()

    def evaluate(self, states: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the estimated value (expected discounted return) of each state."""
        with torch.no_grad():
            values: npt.NDArray[np.float32] = (
                self._state_values(self._to_tensor(states)).cpu().numpy()
            )
        return values

    def act_in_environment(
        self, states: npt.ArrayLike, deterministic: bool | npt.NDArray[np.bool_] = True
    ) -> Array:
        """Return actions in the action space of the environment."""
        return self.actions.to_environment(self.act_batch(states, deterministic))

    def random_actions(self) -> Array:
        """Return uniformly random actions for all slots."""
        if isinstance(self.actions, DiscreteActions):
            shape = (self.num_slots,)
            actions = torch.randint(
                self.actions.count, shape, generator=self.generator, device=self.device
            )
            return actions.cpu().numpy()
        uniform = torch.rand(
            self.num_slots, self.actions.size, generator=self.generator, device=self.device
        )
        low, high = self.actions.low, self.actions.high
        return np.asarray(low + uniform.cpu().numpy() * (high - low), np.float32)

    def _to_tensor(self, states: npt.ArrayLike) -> Tensor:
        return torch.from_numpy(self._checked_states(states)).to(self.device)

    def _checked_states(self, states: npt.ArrayLike) -> npt.NDArray[np.float32]:
        array = np.require(states, np.float32, ["C", "W"])
        if array.ndim != 2 or array.shape[1] != self.spaces.observation_size:
            raise ValueError(
                f"states must have the shape (rows, {self.spaces.observation_size}), got "
                f"{array.shape}"
            )
        return array

    # ---- During a run

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Restart training from another agent's networks; nothing of this agent is kept."""
        self.take(description, name)
        self.clear_memory()
        self.cut()

    @abstractmethod
    def progressed(self, steps: int, share: float) -> None:
        """Update schedules such as epsilon or the learning rate.

        Args:
            steps: Environment steps of the run so far.
            share: The completed fraction of the run, from 0 to 1.
        """

    @abstractmethod
    def cut(self) -> None:
        """Discard unfinished episodes: all slots start new ones."""

    @abstractmethod
    def clear_memory(self) -> None:
        """Discard the stored experience; the networks stay as they are."""

    def metrics(self) -> dict[str, float]:
        """Return the mean metrics of the updates since the last call; empty without updates."""
        count, self._metric_updates = self._metric_updates, 0
        if not count:
            return {}
        means = (self._metric_sums / count).tolist()
        self._metric_sums.zero_()
        return dict(zip(self.metric_names, means, strict=True))

    @abstractmethod
    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """Return everything that the rest of a run depends on.

        Args:
            with_memory: Whether to include the stored experience.
        """

    def _common_state(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "generator": self.generator.get_state(),
            "device": self.device.type,
            "totals": self._metric_sums,
            "updates_in_totals": self._metric_updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self.network.load_state_dict(state["network"])
        if state["device"] == self.device.type:
            self.generator.set_state(state["generator"].cpu())
        else:
            warnings.warn(
                f"the run was started on {state['device']} and resumes on {self.device.type}: its "
                "random numbers will differ from those of an uninterrupted run",
                stacklevel=2,
            )
        self._run_explore.reset()
        self._metric_sums.copy_(state["totals"])
        self._metric_updates = state["updates_in_totals"]

    # ---- Files

    def description(self) -> dict[str, Any]:
        """Return the content of an agent file: settings, spaces and networks."""
        return {
            "file": _FILE_TYPE,
            "kind": self.kind,
            "settings": msgspec.to_builtins(self.settings),
            "spaces": self.spaces.state(),
            "network": self.network.state_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write the networks and settings to a file, without the stored experience."""
        write_file(Path(path), self.description())

    def load(self, path: str | Path) -> Self:
        """Load networks from the file of an agent with equal spaces and network settings.

        Raises:
            CheckpointError: The file holds no such agent. This agent is unchanged.
        """
        self.take(read_agent(path), str(path))
        return self

    def take(self, description: dict[str, Any], name: str) -> None:
        """Load networks from the description of an agent.

        Args:
            description: As returned by :meth:`description`.
            name: The name of the agent, for error messages.

        Raises:
            CheckpointError: Its kind, spaces or network settings differ from this agent's.
        """
        if description["kind"] != self.kind:
            raise CheckpointError(f"{name} is of {description['kind']}, not of {self.kind}")
        own = self.description()
        for part, names in (("spaces", own["spaces"]), ("settings", self.network_settings)):
            for key in names:
                actual, expected = description[part].get(key), own[part][key]
                if actual != expected:
                    raise CheckpointError(
                        f"{name} does not fit this agent: {key} is {actual}, expected {expected}"
                    )
        self.network.load_state_dict(description["network"])


def read_agent(path: str | Path) -> dict[str, Any]:
    """Read the description of an agent from an agent file, a checkpoint or the folder of a run.

    Of a run, this is the best agent, or the final one, or that of the latest checkpoint.

    Raises:
        CheckpointError: The path holds no agent, or its file is damaged.
    """
    path = Path(path)
    if path.is_dir():
        files = [path / name for name in RUN_AGENTS if (path / name).is_file()]
        files += sorted(path.glob("checkpoints/*.checkpoint"), reverse=True)
        if not files:
            raise CheckpointError(f"{path} has no agent yet, and no checkpoint")
        path = files[0]
    if not path.is_file():
        raise CheckpointError(f"there is no agent {path}")
    data = read_file(path)
    if isinstance(agent := data.get("agent"), dict):
        data = agent
    if data.get("file") != _FILE_TYPE:
        raise CheckpointError(f"{path} is not an agent file")
    return data
