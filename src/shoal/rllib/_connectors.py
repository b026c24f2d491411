"""What becomes of observations before a module, and of actions after it, for all slots at once."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from ray.rllib.connectors.connector_pipeline_v2 import ConnectorPipelineV2
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.env_to_module import (
    AddObservationsFromEpisodesToBatch,
    AddStatesFromEpisodesToBatch,
    AddTimeDimToBatchAndZeroPad,
    BatchIndividualItems,
    NumpyToTensor,
)
from ray.rllib.connectors.module_to_env import (
    GetActions,
    ListifyDataForVectorEnv,
    NormalizeAndClipActions,
    RemoveSingleTsTimeRankFromBatch,
    TensorToNumpy,
    UnBatchToIndividualItems,
)
from ray.rllib.core.columns import Columns
from ray.rllib.utils.spaces import space_utils

__all__ = ["BatchedActions", "BatchedObservations", "batch_actions", "batch_observations"]

_Pieces = list[type[Any]]

_UNTYPED: Any = space_utils

_OBSERVATIONS_ONE_BY_ONE: _Pieces = [
    AddObservationsFromEpisodesToBatch,
    AddTimeDimToBatchAndZeroPad,
    AddStatesFromEpisodesToBatch,
    BatchIndividualItems,
]
"""RLlib's pieces that look for each slot's observation, and make a batch of them."""

_ACTIONS_ONE_BY_ONE: _Pieces = [
    UnBatchToIndividualItems,
    RemoveSingleTsTimeRankFromBatch,
    NormalizeAndClipActions,
    ListifyDataForVectorEnv,
]
"""RLlib's pieces that take a batch of actions apart, look at each, and put it together again."""


class BatchedObservations(ConnectorV2):
    """Makes a batch of the observations that all slots have come to.

    In a pipeline it stands for RLlib's four pieces that do so for a module without a state.
    """

    def __call__(self, *, batch: Any, episodes: Any, shared_data: Any = None, **told: Any) -> Any:
        """Add the newest observations, which an env runner tells, or else those of the episodes."""
        if Columns.OBS in batch:
            return batch
        observations = told.get(Columns.OBS)
        if observations is None:
            observations = [episode.get_observations(-1) for episode in episodes]
        if shared_data is not None:
            # Where RLlib's pieces after the module look for whose the rows are.
            shared_data["memorized_map_structure"] = [episode.id_ for episode in episodes]
        return {
            **batch,
            Columns.OBS: _UNTYPED.batch(
                observations, individual_items_already_have_batch_dim="auto"
            ),
        }


class BatchedActions(NormalizeAndClipActions):
    """Scales or clips a batch of actions, and leaves it a batch.

    In a pipeline it stands for RLlib's four pieces that take the batch apart and put it together
    again. Each action comes out as from these.
    """

    def __call__(self, *, batch: Any, **_: Any) -> Any:
        """Add the actions for the environments, and give other columns a row for each slot."""
        actions = batch[Columns.ACTIONS]
        rows = {
            column: data if column == Columns.ACTIONS else _rows(data)
            for column, data in batch.items()
        }
        if self.normalize_actions:
            fitted = _UNTYPED.unsquash_action(actions, self._action_space_struct)
        elif self.clip_actions:
            fitted = _UNTYPED.clip_action(actions, self._action_space_struct)
        else:
            return rows
        return {**rows, Columns.ACTIONS_FOR_ENV: fitted}

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """With what a checkpoint makes it again."""
        arguments, others = super().get_ctor_args_and_kwargs()
        how = {"normalize_actions": self.normalize_actions, "clip_actions": self.clip_actions}
        return arguments, {**others, **how}


def batch_observations(pipeline: ConnectorV2) -> None:
    """Let a pipeline from the environments to a module without a state make batches at once.

    A pipeline that somebody has added to, or taken from, is left alone: its pieces may look at the
    observations of single slots.
    """
    if _consists_of(pipeline, [*_OBSERVATIONS_ONE_BY_ONE, NumpyToTensor]):
        _replace(pipeline, _OBSERVATIONS_ONE_BY_ONE, BatchedObservations())


def batch_actions(pipeline: ConnectorV2) -> None:
    """Let a pipeline from a module without a state to the environments take actions as one array.

    A pipeline that somebody has added to, or taken from, is left alone: its pieces may look at
    single actions.
    """
    if _consists_of(pipeline, [GetActions, TensorToNumpy, *_ACTIONS_ONE_BY_ONE]):
        (fitting,) = (
            piece for piece in pipeline.connectors if isinstance(piece, NormalizeAndClipActions)
        )
        batched = BatchedActions(
            normalize_actions=fitting.normalize_actions, clip_actions=fitting.clip_actions
        )
        _replace(pipeline, _ACTIONS_ONE_BY_ONE, batched)


def _consists_of(pipeline: ConnectorV2, pieces: _Pieces) -> TypeGuard[ConnectorPipelineV2]:
    if not isinstance(pipeline, ConnectorPipelineV2):
        return False
    return [type(piece) for piece in pipeline.connectors] == pieces


def _replace(pipeline: ConnectorPipelineV2, pieces: _Pieces, by: ConnectorV2) -> None:
    pipeline.insert_before(pieces[0], by)
    for piece in pieces:
        pipeline.remove(piece)


def _rows(column: Any) -> Any:
    """What gives a slot's value when it is asked for the slot: an array is that already."""
    return column if isinstance(column, np.ndarray) else _UNTYPED.unbatch(column)
