"""Saving and loading of wrapper states."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv, wrappers
from tests.vector.wrappers.playing import PARTS, factory_of, random_env

WRAPPERS = {
    "statistics": (wrappers.RecordEpisodeStatistics, factory_of("CartPole-v1")),
    "observations": (wrappers.NormalizeObservation, factory_of("CartPole-v1")),
    "images": (
        wrappers.NormalizeObservation,
        random_env(spaces.Box(0, 255, (3, 2), np.uint8)),
    ),
    "rewards": (wrappers.NormalizeReward, factory_of("Pendulum-v1")),
    "frames": (lambda envs: wrappers.FrameStackObservation(envs, 3), random_env(PARTS)),
}


def without_times(result):
    infos = dict(result[-1])
    infos.pop("episode", None)
    return (*result[:-1], infos)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("name", WRAPPERS)
def test_loaded_state_continues(name, mode, tmp_path):
    wrap, factory = WRAPPERS[name]

    def started():
        envs = wrap(SyncVectorEnv([factory] * 3, autoreset_mode=mode))
        envs.reset(seed=4)
        envs.action_space.seed(4)
        for _ in range(25):
            envs.step(envs.action_space.sample())
        return envs

    uninterrupted, interrupted = started(), started()
    interrupted.save(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    resumed = wrap(interrupted.env)
    resumed.load(tmp_path / "state")
    for _ in range(40):
        action = uninterrupted.action_space.sample()
        assert_identical(
            without_times(resumed.step(action)), without_times(uninterrupted.step(action))
        )
    if name == "statistics":
        assert resumed.return_queue == uninterrupted.return_queue
        assert resumed.length_queue == uninterrupted.length_queue
        assert resumed.episode_count == uninterrupted.episode_count
        assert len(resumed.time_queue) == len(uninterrupted.time_queue)


def test_loaded_episode_seconds_continue(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    with SyncVectorEnv([factory_of("CartPole-v1")]) as inner:
        envs = wrappers.RecordEpisodeStatistics(inner)
        envs.reset(seed=0)
        now = 103.0
        envs.save(tmp_path / "state")
        now = 10.0
        resumed = wrappers.RecordEpisodeStatistics(inner)
        resumed.load(tmp_path / "state")
        now = 12.0
        for _ in range(12):
            *_, infos = resumed.step(np.array([1]))
            if "episode" in infos:
                break
        assert infos["episode"]["t"].tolist() == [5.0]


def test_observation_statistics_load_into_any_number_of_slots(tmp_path):
    with (
        SyncVectorEnv([factory_of("CartPole-v1")] * 3) as many,
        SyncVectorEnv([factory_of("CartPole-v1")]) as one,
    ):
        trained = wrappers.NormalizeObservation(many)
        trained.reset(seed=0)
        trained.save(tmp_path / "state")
        evaluated = wrappers.NormalizeObservation(one)
        evaluated.load(tmp_path / "state")
        assert_identical(evaluated.obs_rms.mean, trained.obs_rms.mean)


def snapshot(envs):
    return {key: value.copy() for key, value in envs._state().items() if key != "seconds"}


def refuse(envs, path, message):
    before = snapshot(envs)
    with pytest.raises(ValueError, match=message):
        envs.load(path)
    assert_identical(snapshot(envs), before)


@pytest.mark.parametrize("name", WRAPPERS)
def test_invalid_files_are_refused(name, tmp_path):
    wrap, factory = WRAPPERS[name]
    path = tmp_path / "state"
    with wrap(SyncVectorEnv([factory] * 3)) as envs:
        envs.reset(seed=0)
        for content in (b"", b"nothing", b"PK\x03\x04 broken"):
            path.write_bytes(content)
            refuse(envs, path, "is not the state of a wrapper")
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
        refuse(envs, path, "is not the state of a wrapper")
        with path.open("wb") as file:
            np.savez(file, a=np.array([{}], object))
        refuse(envs, path, "is not the state of a wrapper")
        with path.open("wb") as file:
            np.savez(file, a=np.zeros(3))
        refuse(envs, path, "is not the state of a wrapper")
        with path.open("wb") as file:
            np.savez(file, kind=np.array(envs._kind), a=np.zeros(3))
        refuse(envs, path, r"holds \['a'\], expected")
        with pytest.raises(FileNotFoundError):
            envs.load(tmp_path / "missing")


def test_files_of_other_wrappers_slots_or_shapes_are_refused(tmp_path):
    path = tmp_path / "state"

    def vector(count, env_id="CartPole-v1"):
        return SyncVectorEnv([factory_of(env_id)] * count)

    wrappers.NormalizeReward(vector(2)).save(path)
    refuse(wrappers.RecordEpisodeStatistics(vector(2)), path, "NormalizeReward, expected .*Record")
    refuse(wrappers.NormalizeReward(vector(3)), path, "saved with 2 slots, this vector has 3")
    wrappers.RecordEpisodeStatistics(vector(2)).save(path)
    refuse(wrappers.RecordEpisodeStatistics(vector(1)), path, "with 2 slots, this vector has 1")
    wrappers.NormalizeObservation(vector(2)).save(path)
    other = wrappers.NormalizeObservation(vector(2, "Pendulum-v1"))
    refuse(other, path, r"mean has shape \(4,\), expected \(3,\)")
    wrappers.FrameStackObservation(vector(2), 4).save(path)
    refuse(wrappers.FrameStackObservation(vector(2), 3), path, "frames_0 has shape")
    refuse(wrappers.FrameStackObservation(vector(3), 4), path, "with 2 slots")
    doubled = wrappers.DtypeObservation(vector(2), np.float64)
    refuse(wrappers.FrameStackObservation(doubled, 4), path, "is of float32, expected float64")
