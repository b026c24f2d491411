"""The pieces of RLlib's pipelines that Shoal's env runner puts in the place of others."""

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
from tests.rllib.collecting import NATIVE, collected, runner


def pieces(pipeline):
    return [type(piece).__name__ for piece in pipeline.connectors]


def test_what_looks_at_single_slots_is_replaced():
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner) as made:
        assert pieces(made._env_to_module) == ["BatchedObservations", "NumpyToTensor"]
        assert pieces(made._module_to_env) == ["GetActions", "TensorToNumpy", "BatchedActions"]


class Looking(ConnectorV2):
    """Notes what it is shown."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __call__(self, *, batch, **_):
        self.seen.append(type(batch["actions"]))
        return batch


@pytest.mark.parametrize("place", ["env_to_module_connector", "module_to_env_connector"])
def test_a_pipeline_with_connectors_of_the_users_own_stays_as_it_is(place):
    seen = []
    settings = {
        "env_to_module_connector": {place: lambda env, spaces, device: MeanStdFilter()},
        "module_to_env_connector": {place: lambda env, spaces: Looking(seen)},
    }[place]
    expected = collected("Pendulum-v1", **settings)
    got = collected(
        shoal.rllib.register("Pendulum-v1"), kind=shoal.rllib.EnvRunner, **settings, **NATIVE
    )
    assert_identical(got, expected)
    assert set(seen) <= {dict}
    with runner("Pendulum-v1", kind=SingleAgentEnvRunner, **settings) as theirs:
        before = pieces(theirs._env_to_module), pieces(theirs._module_to_env)
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner, **settings) as ours:
        after = pieces(ours._env_to_module), pieces(ours._module_to_env)
    stays = 0 if place.startswith("env") else 1
    assert after[stays] == before[stays]
    assert after[1 - stays] != before[1 - stays]


def test_pipelines_come_back_from_a_checkpoint_and_serve_single_episodes(tmp_path):
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.float32([1.0, 0.0, 0.5]), {})
    with runner("Pendulum-v1", kind=shoal.rllib.EnvRunner) as made:
        made.save_to_path(tmp_path)
        before = EnvToModulePipeline.from_checkpoint(tmp_path / "env_to_module_connector")
        after = ModuleToEnvPipeline.from_checkpoint(tmp_path / "module_to_env_connector")
        assert pieces(before) == pieces(made._env_to_module)
        assert pieces(after) == pieces(made._module_to_env)
        shared = {"episodes": [episode], "rl_module": made.module, "explore": False}
        batch = before(batch={}, **shared)
        answer = after(batch=made.module.forward_inference(batch), **shared)
        assert batch["obs"].tolist() == [[1.0, 0.0, 0.5]]
        assert answer["actions_for_env"].shape == (1, 1)
        scaled = np.clip(2 * answer["actions"], -2, 2)
        np.testing.assert_allclose(answer["actions_for_env"], scaled, rtol=1e-6)
