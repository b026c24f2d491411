"""What every agent is and has."""

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
from shoal.train._agents.actions import AgentSpaces, Choices, Numbers
from shoal.train._agents.repeated import Repeated, chosen_compilation
from shoal.train._config.agent_settings import AgentSettings
from shoal.train._files import read_file, write_file

__all__ = ["RUN_AGENTS", "Agent", "Step", "read_agent"]

Array = npt.NDArray[Any]

_FILE = "agent"

RUN_AGENTS = ("best.agent", "final.agent")
"""The agents that a run leaves in its folder."""


class Step(NamedTuple):
    """A step of all slots, as an agent sees it."""

    observations: Array
    actions: Array
    """As the agent has chosen them."""
    rewards: Array
    next_observations: Array
    """Where an episode has ended, its last one, not the first of the next."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]


class Agent(ABC):
    """Learns what to do, in all slots of a vector at once.

    Args:
        spaces: What it observes and does.
        settings: What can be chosen; the defaults if they are left out.
        num_slots: How many slots it trains in.
        device: Where it computes.
        seed: Of everything that is random about it.
    """

    kind: ClassVar[str]
    settings_type: ClassVar[type[AgentSettings]]
    is_on_policy: ClassVar[bool] = False

    network_settings: ClassVar[tuple[str, ...]] = ("hidden_dim", "activation")
    """The settings that must be the same for what one has learnt to be of use to another."""

    network: nn.Module
    """All parameters, as an agent's file holds them."""
    actions: Choices | Numbers
    """How its actions become those that environments take."""

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
        self._totals = torch.zeros(len(self.metric_names), device=self.device)
        self._updates_in_totals = 0
        with torch.random.fork_rng(devices=[]):
            # Of the CPU alone, where networks are made: those of GPUs would not be set back.
            torch.default_generator.manual_seed(seed)
            self._build()

        is_choice = isinstance(self.actions, Choices)
        shape = (num_slots,) if is_choice else (num_slots, self.actions.size)  # type: ignore[union-attr]
        kind = torch.int64 if is_choice else torch.float32
        # Exploring is recorded, too, so what it reads and writes stays where it is.
        self._seen_now = torch.zeros(num_slots, spaces.observation_size, device=self.device)
        self._chosen = torch.zeros(shape, dtype=kind, device=self.device)
        self._run_choice = self._repeated(self._explore, compiles=False)

    metric_names: ClassVar[tuple[str, ...]] = ()
    """What an update tells of itself, in this order."""

    def _repeated(self, function: Callable[[], None], *, compiles: bool = True) -> Repeated:
        """What is done again and again; small work is recorded, but not worth compiling."""
        compilation = chosen_compilation(self.settings.compile, self.device)
        if compilation == "inductor" and not compiles:
            compilation = "graph"
        return Repeated(function, compilation, self.device, self.generator)

    @abstractmethod
    def _build(self) -> None:
        """Make the networks, and what learns them."""

    @abstractmethod
    def _choose(self, states: Tensor, sure: Tensor | bool) -> Tensor:
        """Actions for these states, in all or some of which nothing is to be explored."""

    @abstractmethod
    def _value(self, states: Tensor) -> Tensor:
        """How much is expected of these states: one number for each."""

    @abstractmethod
    def _explore(self) -> None:
        """Choose for what all slots see now."""

    def explore(self, observations: Array) -> Array:
        """Actions for all slots while training, in the order of the slots."""
        seen = self._checked(observations)
        if len(seen) != self.num_slots:
            raise ValueError(f"expected a state of each of {self.num_slots} slots, got {len(seen)}")
        self._seen_now.copy_(torch.from_numpy(seen))
        with torch.no_grad():
            self._run_choice()
        found: Array = self._chosen.cpu().numpy()
        # Memory of the CPU is written to again in the next step.
        return found.copy() if self.device.type == "cpu" else found

    @abstractmethod
    def remember(self, step: Step) -> None:
        """Take in what came of the actions that ``explore`` has given."""

    @abstractmethod
    def learn(self, due: int) -> int:
        """Make updates; returns how many gradient steps it were.

        Args:
            due: How many the pace of the run asks for. Agents that learn from what they have just
                done, and only once, have a pace of their own.
        """

    def act(self, state: npt.ArrayLike, deterministic: bool = False) -> Any:
        """An action for one state: a number for choices, else an array."""
        action = self.act_batch(np.asarray(state, np.float32)[None], deterministic)[0]
        return int(action) if isinstance(self.actions, Choices) else action

    def act_batch(
        self, states: npt.ArrayLike, deterministic: bool | npt.NDArray[np.bool_] = False
    ) -> Array:
        """Actions for many states, by one pass through the network.

        Args:
            states: (rows, numbers).
            deterministic: Do what is held best, instead of exploring: everywhere, or in the rows
                where this is true.
        """
        sure: Tensor | bool
        if isinstance(deterministic, np.ndarray):
            sure = torch.from_numpy(deterministic).to(self.device)
        else:
            sure = bool(deterministic)
        with torch.no_grad():
            return self._choose(self._seen(states), sure).cpu().numpy()

    def evaluate(self, states: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """How much reward the agent expects from each of these states on, discounted."""
        with torch.no_grad():
            found: npt.NDArray[np.float32] = self._value(self._seen(states)).cpu().numpy()
        return found

    def act_in_environment(
        self, states: npt.ArrayLike, deterministic: bool | npt.NDArray[np.bool_] = True
    ) -> Array:
        """Actions as the environment takes them."""
        return self.actions.to_environment(self.act_batch(states, deterministic))

    def random_actions(self) -> Array:
        """Actions for all slots, drawn uniformly."""
        if isinstance(self.actions, Choices):
            shape = (self.num_slots,)
            drawn = torch.randint(
                self.actions.count, shape, generator=self.generator, device=self.device
            )
            return drawn.cpu().numpy()
        share = torch.rand(
            self.num_slots, self.actions.size, generator=self.generator, device=self.device
        )
        low, high = self.actions.low, self.actions.high
        return np.asarray(low + share.cpu().numpy() * (high - low), np.float32)

    def _seen(self, states: npt.ArrayLike) -> Tensor:
        return torch.from_numpy(self._checked(states)).to(self.device)

    def _checked(self, states: npt.ArrayLike) -> npt.NDArray[np.float32]:
        array = np.require(states, np.float32, ["C", "W"])
        if array.ndim != 2 or array.shape[1] != self.spaces.observation_size:
            raise ValueError(
                f"states must have the shape (rows, {self.spaces.observation_size}), got "
                f"{array.shape}"
            )
        return array

    # ---- While a run goes on

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Begin anew with what another agent has learnt: with none of what was one's own."""
        self.take(description, name)
        self.clear_memory()
        self.cut()

    @abstractmethod
    def progressed(self, steps: int, share: float) -> None:
        """The run has come to this environment step, and to this part of its whole."""

    @abstractmethod
    def cut(self) -> None:
        """All slots begin new episodes, and what was begun is not continued."""

    @abstractmethod
    def clear_memory(self) -> None:
        """Forget what was experienced, but not what was learnt."""

    def metrics(self) -> dict[str, float]:
        """What updates have told of themselves since the last call, on average."""
        count, self._updates_in_totals = self._updates_in_totals, 0
        if not count:
            return {}
        found = dict(zip(self.metric_names, (self._totals / count).tolist(), strict=True))
        self._totals.zero_()
        return found

    @abstractmethod
    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """All that the rest of a run depends on.

        Args:
            with_memory: Whether what was experienced is a part of it.
        """

    def _common_state(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "generator": self.generator.get_state(),
            "device": self.device.type,
            "totals": self._totals,
            "updates_in_totals": self._updates_in_totals,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.network.load_state_dict(state["network"])
        if state["device"] == self.device.type:
            self.generator.set_state(state["generator"].cpu())
        else:
            here = self.device.type
            warnings.warn(
                f"the run was on {state['device']} and goes on on {here}: it draws other numbers",
                stacklevel=2,
            )
        self._run_choice.forget()
        self._totals.copy_(state["totals"])
        self._updates_in_totals = state["updates_in_totals"]

    # ---- Files

    def description(self) -> dict[str, Any]:
        """What an agent's file holds."""
        return {
            "file": _FILE,
            "kind": self.kind,
            "settings": msgspec.to_builtins(self.settings),
            "spaces": self.spaces.state(),
            "network": self.network.state_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write what the agent has learnt into a file, without what it remembers."""
        write_file(Path(path), self.description())

    def load(self, path: str | Path) -> Self:
        """Take what was learnt from a file; it must be of an agent like this one."""
        self.take(read_agent(path), str(path))
        return self

    def take(self, description: dict[str, Any], name: str) -> None:
        """Take what another agent has learnt, given its description."""
        if description["kind"] != self.kind:
            raise CheckpointError(f"{name} is of {description['kind']}, not of {self.kind}")
        mine = self.description()
        for part, names in (("spaces", mine["spaces"]), ("settings", self.network_settings)):
            for key in names:
                theirs, ours = description[part].get(key), mine[part][key]
                if theirs != ours:
                    raise CheckpointError(
                        f"{name} is of another agent than this: its {key} is {theirs}, not {ours}"
                    )
        self.network.load_state_dict(description["network"])


def read_agent(path: str | Path) -> dict[str, Any]:
    """What an agent has learnt: of its file, of a checkpoint, or of a run's best agent.

    Raises:
        CheckpointError: There is none, or it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in RUN_AGENTS if (path / name).is_file()]
        found += sorted(path.glob("checkpoints/*.checkpoint"), reverse=True)
        if not found:
            raise CheckpointError(f"{path} has no agent yet, and no checkpoint")
        path = found[0]
    if not path.is_file():
        raise CheckpointError(f"there is no agent {path}")
    data = read_file(path)
    if isinstance(agent := data.get("agent"), dict):
        data = agent
    if data.get("file") != _FILE:
        raise CheckpointError(f"{path} is not the file of an agent")
    return data
