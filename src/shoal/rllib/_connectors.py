"""Connectors that process the observations and actions of all slots at once."""

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

_Connectors = list[type[Any]]

_space_utils: Any = space_utils  # the module is not typed

_OBSERVATION_CONNECTORS: _Connectors = [
    AddObservationsFromEpisodesToBatch,
    AddTimeDimToBatchAndZeroPad,
    AddStatesFromEpisodesToBatch,
    BatchIndividualItems,
]
"""RLlib's connectors that collect each slot's observation and join them to a batch."""

_ACTION_CONNECTORS: _Connectors = [
    UnBatchToIndividualItems,
    RemoveSingleTsTimeRankFromBatch,
    NormalizeAndClipActions,
    ListifyDataForVectorEnv,
]
"""RLlib's connectors that split a batch of actions, process each action and join them again."""


class BatchedObservations(ConnectorV2):
    """Adds the newest observations of all slots as a batch.

    It replaces the four RLlib connectors that do so for a module without state.
    """

    def __call__(self, *, batch: Any, episodes: Any, shared_data: Any = None, **data: Any) -> Any:
        """Add the observations passed by the env runner, or those of the episodes."""
        if Columns.OBS in batch:
            return batch
        observations = data.get(Columns.OBS)
        if observations is None:
            observations = [episode.get_observations(-1) for episode in episodes]
        if shared_data is not None:
            # RLlib's connectors after the module map rows to episodes with this list.
            shared_data["memorized_map_structure"] = [episode.id_ for episode in episodes]
        return {
            **batch,
            Columns.OBS: _space_utils.batch(
                observations, individual_items_already_have_batch_dim="auto"
            ),
        }


class BatchedActions(NormalizeAndClipActions):
    """Scales or clips a batch of actions.

    It replaces the four RLlib connectors that split the batch, process each action and join the
    actions again. The result is the same.
    """

    def __call__(self, *, batch: Any, **_: Any) -> Any:
        """Add the actions for the environments, and split other columns into rows."""
        actions = batch[Columns.ACTIONS]
        rows = {
            column: data if column == Columns.ACTIONS else _rows(data)
            for column, data in batch.items()
        }
        if self.normalize_actions:
            env_actions = _space_utils.unsquash_action(actions, self._action_space_struct)
        elif self.clip_actions:
            env_actions = _space_utils.clip_action(actions, self._action_space_struct)
        else:
            return rows
        return {**rows, Columns.ACTIONS_FOR_ENV: env_actions}

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the constructor arguments with which a checkpoint restores the connector."""
        args, kwargs = super().get_ctor_args_and_kwargs()
        own = {"normalize_actions": self.normalize_actions, "clip_actions": self.clip_actions}
        return args, {**kwargs, **own}


def batch_observations(pipeline: ConnectorV2) -> None:
    """Replace the connectors that batch observations in a pipeline to a module without state.

    A modified pipeline is left unchanged, because its connectors may need single observations.
    """
    if _consists_of(pipeline, [*_OBSERVATION_CONNECTORS, NumpyToTensor]):
        _replace(pipeline, _OBSERVATION_CONNECTORS, BatchedObservations())


def batch_actions(pipeline: ConnectorV2) -> None:
    """Replace the connectors that process actions in a pipeline from a module without state.

    A modified pipeline is left unchanged, because its connectors may need single actions.
    """
    if _consists_of(pipeline, [GetActions, TensorToNumpy, *_ACTION_CONNECTORS]):
        (original,) = (
            connector
            for connector in pipeline.connectors
            if isinstance(connector, NormalizeAndClipActions)
        )
        batched = BatchedActions(
            normalize_actions=original.normalize_actions, clip_actions=original.clip_actions
        )
        _replace(pipeline, _ACTION_CONNECTORS, batched)


def _consists_of(pipeline: ConnectorV2, types: _Connectors) -> TypeGuard[ConnectorPipelineV2]:
    if not isinstance(pipeline, ConnectorPipelineV2):
        return False
    return [type(connector) for connector in pipeline.connectors] == types


def _replace(pipeline: ConnectorPipelineV2, types: _Connectors, replacement: ConnectorV2) -> None:
    pipeline.insert_before(types[0], replacement)
    for connector_type in types:
        pipeline.remove(connector_type)


def _rows(column: Any) -> Any:
    """Return a sequence of values, one per slot. An array already is such a sequence."""
    return column if isinstance(column, np.ndarray) else _space_utils.unbatch(column)
