"""Where agents compute, and with how many threads."""

import pytest
import torch

from shoal.train import resume_run
from shoal.train._config.agent_settings import DDDQNSettings, PPOSettings, SACSettings
from shoal.train._runs.devices import choose_device, cpu_threads, useful_threads
from shoal.train._runs.folder import RunFolder
from shoal.train._runs.run import Run
from tests.train.runs.making import checkpoints, made_config, trained


@pytest.fixture
def four_threads():
    with cpu_threads(4):
        yield


@pytest.mark.usefixtures("four_threads")
class TestThreads:
    @pytest.mark.parametrize(
        ("settings", "num_envs", "expected"),
        [
            (DDDQNSettings(hidden_dim=[64, 64]), 8, 1),
            (DDDQNSettings(hidden_dim=[64, 64], batch_size=4096), 8, 4),
            (SACSettings(hidden_dim=[256, 256], batch_size=256), 1, 4),
            (SACSettings(hidden_dim=[256, 256], batch_size=16), 1, 1),
            (PPOSettings(hidden_dim=[64], rollout_steps=16, minibatches=4), 8, 1),
            (PPOSettings(hidden_dim=[64], rollout_steps=64, minibatches=4), 4096, 4),
        ],
    )
    def test_small_updates_are_not_shared(self, settings, num_envs, expected):
        assert useful_threads(settings, num_envs) == expected

    def test_they_are_those_of_the_run_while_it_trains(self, tmp_path, monkeypatch):
        found, step = [], Run._step

        def seen(run):
            found.append(torch.get_num_threads())
            step(run)

        monkeypatch.setattr(Run, "_step", seen)
        trained(made_config(steps=100, checkpoint_save_freq=50), tmp_path)
        assert set(found) == {1}
        assert torch.get_num_threads() == 4
        assert RunFolder(tmp_path / "run").read_plan().threads == 1
        with cpu_threads(3):  # results depend on it, so it is as it was
            checkpoints(tmp_path / "run")[-1].unlink()
            resume_run(tmp_path / "run", verbose=False)
            assert torch.get_num_threads() == 3
        assert set(found) == {1}

    def test_they_are_what_they_were_after_an_error(self):
        with pytest.raises(ZeroDivisionError), cpu_threads(1):
            raise ZeroDivisionError
        assert torch.get_num_threads() == 4


class TestDevices:
    @pytest.mark.parametrize("wanted", ["cpu", torch.device("cpu")])
    def test_names_and_objects(self, wanted):
        assert choose_device(wanted) == "cpu"

    @pytest.mark.parametrize(
        "wanted", ["mps", "graphics", "meta", "", "cuda:x", torch.device("mps")]
    )
    def test_what_agents_cannot_compute_on(self, wanted):
        with pytest.raises(ValueError, match="device must be cpu, cuda, cuda:1 and the like, got"):
            choose_device(wanted)

    def test_a_run_goes_on_elsewhere(self, tmp_path, monkeypatch):
        """Here on a GPU that is not there, which is the same as where it was."""
        trained(made_config(steps=100, checkpoint_save_freq=50), tmp_path)
        checkpoints(tmp_path / "run")[-1].unlink()
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.warns(UserWarning, match="there is no cuda:1"):
            result = resume_run(tmp_path / "run", verbose=False, device="cuda:1")
        assert result["total_steps"] == 100
