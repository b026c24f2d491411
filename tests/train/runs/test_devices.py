"""Devices and CPU threads of runs."""

import pytest
import torch

from shoal.train import resume_run
from shoal.train._config.agent_settings import DDDQNSettings, PPOSettings, SACSettings
from shoal.train._runs.devices import choose_device, cpu_threads, useful_threads
from shoal.train._runs.folder import RunFolder
from shoal.train._runs.run import Run
from tests.train.runs.small_runs import checkpoints, make_config, train_run


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
    def test_small_updates_use_one_thread(self, settings, num_envs, expected):
        assert useful_threads(settings, num_envs) == expected

    def test_threads_during_and_after_a_run(self, tmp_path, monkeypatch):
        counts, step = [], Run._step

        def recorded(run):
            counts.append(torch.get_num_threads())
            step(run)

        monkeypatch.setattr(Run, "_step", recorded)
        train_run(make_config(steps=100, checkpoint_save_freq=50), tmp_path)
        assert set(counts) == {1}
        assert torch.get_num_threads() == 4
        assert RunFolder(tmp_path / "run").read_plan().threads == 1
        with cpu_threads(3):  # a resumed run keeps its number, because results depend on it
            checkpoints(tmp_path / "run")[-1].unlink()
            resume_run(tmp_path / "run", verbose=False)
            assert torch.get_num_threads() == 3
        assert set(counts) == {1}

    def test_threads_are_restored_after_an_error(self):
        with pytest.raises(ZeroDivisionError), cpu_threads(1):
            raise ZeroDivisionError
        assert torch.get_num_threads() == 4


class TestDevices:
    @pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
    def test_names_and_objects(self, device):
        assert choose_device(device) == "cpu"

    @pytest.mark.parametrize(
        "device", ["mps", "graphics", "meta", "", "cuda:x", torch.device("mps")]
    )
    def test_unsupported_device(self, device):
        with pytest.raises(ValueError, match="device must be cpu, cuda or a name such as cuda:1"):
            choose_device(device)

    def test_resume_on_a_missing_gpu_falls_back(self, tmp_path, monkeypatch):
        train_run(make_config(steps=100, checkpoint_save_freq=50), tmp_path)
        checkpoints(tmp_path / "run")[-1].unlink()
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.warns(UserWarning, match="there is no cuda:1"):
            result = resume_run(tmp_path / "run", verbose=False, device="cuda:1")
        assert result["total_steps"] == 100
