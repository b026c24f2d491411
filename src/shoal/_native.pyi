"""Types of the native core; native/bindings.cpp is the original."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.types import Event, Results, Slots, Work

class Autoreset:
    NEXT_STEP: Autoreset
    SAME_STEP: Autoreset
    DISABLED: Autoreset

class Tree:
    def __init__(self, root: Any) -> None: ...

class Bank:
    def __init__(
        self,
        tree: Tree,
        observations: Sequence[npt.NDArray[Any]],
        rewards: npt.NDArray[np.float64],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        rows: int,
    ) -> None: ...

class SlotState:
    def __init__(
        self,
        finished: npt.NDArray[np.bool_],
        episode_return: npt.NDArray[np.float64],
        episode_length: npt.NDArray[np.int64],
        episode_start: npt.NDArray[np.float64],
        slots: int,
    ) -> None: ...

class ActionIntake:
    def __init__(
        self, tree: Tree, columns: Sequence[npt.NDArray[Any]], state: SlotState, mode: Autoreset
    ) -> None: ...
    def accept(self, actions: Any, slots: Slots) -> None: ...

class Stepper:
    def __init__(
        self,
        tree: Tree,
        actions: ActionIntake,
        state: SlotState,
        envs: list[Any],
        mode: Autoreset,
        statistics: bool,
        deep: bool,
    ) -> None: ...
    memory: list[Any]
    def step(self, actions: Any, bank: Bank | None) -> Results: ...
    def run(self, work: Sequence[Work] | None, bank: Bank | None) -> Results: ...
    def latest(self, slots: Slots, bank: Bank | None) -> Any: ...

def batch_infos(
    events: list[Event],
    num_rows: int,
    merge: Callable[[int, list[tuple[int, Any]]], npt.NDArray[Any]],
) -> dict[str, Any]: ...
