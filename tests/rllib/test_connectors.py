"""Connectors with which Shoal's env runner replaces those of RLlib."""

import numpy as np
import pytest

pytest.importorskip("ray.rllib")

from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.env_to_module import EnvToModulePipeline, MeanStdFilter
from ray.rllib.connectors.module_to_env import ModuleToEnvPipeline
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

import shoal.rllib
from shoal.testing import assert_identical
from tests.rllib.env_runners import NATIVE, collect, runner


def connector_names(pipeline):
    return [type(connector).__name__ for connector in pipeline.connectors]


def test_per_slot_connectors_are_replaced():
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner) as env_runner:
        assert connector_names(env_runner._env_to_module) == [
            "BatchedObservations",
            "NumpyToTensor",
        ]
        assert connector_names(env_runner._module_to_env) == [
            "GetActions",
            "TensorToNumpy",
            "BatchedActions",
        ]


class RecordTypes(ConnectorV2):
    """A connector that records the type of actions."""

    def __init__(self, types):
        super().__init__()
        self.types = types

    def __call__(self, *, batch, **_):
        self.types.append(type(batch["actions"]))
        return batch


@pytest.mark.parametrize("place", ["env_to_module_connector", "module_to_env_connector"])
def test_pipeline_with_custom_connectors_is_unchanged(place):
    types = []
    settings = {
        "env_to_module_connector": {place: lambda env, spaces, device: MeanStdFilter()},
        "module_to_env_connector": {place: lambda env, spaces: RecordTypes(types)},
    }[place]
    expected = collect("Pendulum-v1", **settings)
    actual = collect(
        shoal.rllib.register("Pendulum-v1"), kind=shoal.rllib.EnvRunner, **settings, **NATIVE
    )
    assert_identical(actual, expected)
    assert set(types) <= {dict}
    with runner("Pendulum-v1", kind=SingleAgentEnvRunner, **settings) as theirs:
        before = connector_names(theirs._env_to_module), connector_names(theirs._module_to_env)
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner, **settings) as ours:
        after = connector_names(ours._env_to_module), connector_names(ours._module_to_env)
    custom = 0 if place.startswith("env") else 1
    assert after[custom] == before[custom]
    assert after[1 - custom] != before[1 - custom]


def test_restored_pipelines_process_single_episodes(tmp_path):
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.float32([1.0, 0.0, 0.5]), {})
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner) as env_runner:
        env_runner.save_to_path(tmp_path)
        before = EnvToModulePipeline.from_checkpoint(tmp_path / "env_to_module_connector")
        after = ModuleToEnvPipeline.from_checkpoint(tmp_path / "module_to_env_connector")
        assert connector_names(before) == connector_names(env_runner._env_to_module)
        assert connector_names(after) == connector_names(env_runner._module_to_env)
        shared = {"episodes": [episode], "rl_module": env_runner.module, "explore": False}
        batch = before(batch={}, **shared)
        answer = after(batch=env_runner.module.forward_inference(batch), **shared)
        assert batch["obs"].tolist() == [[1.0, 0.0, 0.5]]
        assert answer["actions_for_env"].shape == (1, 1)
        scaled = np.clip(2 * answer["actions"], -2, 2)
        np.testing.assert_allclose(answer["actions_for_env"], scaled, rtol=1e-6)
