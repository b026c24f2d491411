"""Atari games with other frontends, and vectors created by ID."""

import os

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import shoal
import shoal.sb3
from shoal.atari import AtariVectorEnv
from tests.atari.rollouts import assert_same_rollouts, random_rollout


@pytest.mark.parametrize("backend", ["inline", "thread"])
def test_make_by_id(backend):
    with shoal.make("ALE/Breakout-v5", 3, backend=backend, repeat_action_probability=0) as envs:
        _, infos = envs.reset(seed=3)
        assert infos["_lives"].all()
        got = list(random_rollout(envs, 20))
    with AtariVectorEnv("breakout", 3, num_threads=1) as envs:
        envs.reset(seed=3)
        assert_same_rollouts(got, random_rollout(envs, 20))


def test_make_by_gymnasium(patched_gymnasium):
    envs = gymnasium.make_vec(
        "ALE/Pong-v5", 2, vectorization_mode="shoal", frame_skip=2, grayscale=False
    )
    assert envs.single_observation_space.shape == (4, 84, 84, 3)
    assert envs.unwrapped.get_attr("settings")[0].repeat_action_probability == 0.25
    again = gymnasium.make_vec(envs.spec)
    np.testing.assert_array_equal(envs.reset(seed=1)[0], again.reset(seed=1)[0])
    envs.close()
    again.close()


def test_make_by_id_with_batch_size():
    with shoal.make("ALE/Pong-v5", 4, batch_size=2, statistics=True) as envs:
        envs.reset(seed=0)
        envs.send(np.zeros(4, int))
        batch = envs.recv()
        assert len(batch.slots) == 2
        assert batch.infos["lives"].shape == (2,)
        assert "processes" in str(envs.plan)


@pytest.mark.parametrize("form", ["list", "pre-1.0"])
def test_other_info_formats(form):
    settings = {"max_num_frames_per_episode": 40, "info_format": form, "backend": "inline"}
    mode = AutoresetMode.SAME_STEP
    with shoal.make("ALE/Pong-v5", 2, autoreset_mode=mode, **settings) as envs:
        envs.reset(seed=0)
        for _ in range(10):
            *_, truncations, infos = envs.step(np.zeros(2, int))
        assert truncations.all()
        final = infos[0]["final_info"] if form == "list" else infos["final_info"][0]
        assert final["lives"] == 0
        assert final["episode_frame_number"] > 39


def test_worker_options_by_id():
    with shoal.make("ALE/Pong-v5", 2, thread_affinity_offset=0, workers=1) as envs:
        (core,) = envs.pool.call(_cores, slots=[0])
        assert core == {min(os.sched_getaffinity(0))}
    with shoal.make("ALE/Pong-v5", 1, caller_works=False) as envs:
        assert envs.plan.backend == "process"
    with shoal.make("ALE/Pong-v5", 2, game=["pong", "breakout"], backend="inline") as envs:
        assert envs.games == ("pong", "breakout")


def _cores(_game):
    return os.sched_getaffinity(0)


def test_specs_with_wrappers_or_limits_use_gymnasium():
    spec = gymnasium.spec("ALE/Pong-v5")
    spec.max_episode_steps = 7
    with shoal.make(spec, 1, backend="inline") as envs:
        assert envs.single_observation_space.shape == (210, 160, 3)


def test_life_loss_info_with_other_frontends():
    mode = AutoresetMode.SAME_STEP
    settings = {"life_loss_info": True, "backend": "inline", "autoreset_mode": mode}
    vec_env = shoal.sb3.as_vec_env(shoal.make("ALE/Breakout-v5", 2, **settings))
    vec_env.reset()
    lost = 0
    for _ in range(150):
        _, _, dones, infos = vec_env.step(np.ones(2, int))
        lost += sum(info["life_lost"] and not done for info, done in zip(infos, dones, strict=True))
    assert lost > 1
    vec_env.close()


def test_stable_baselines3():
    from stable_baselines3 import PPO

    envs = shoal.make("ALE/Pong-v5", 2, max_num_frames_per_episode=80, backend="inline")
    vec_env = shoal.sb3.as_vec_env(envs)
    observations = vec_env.reset()
    assert observations.shape == (2, 4, 84, 84)
    for _ in range(20):
        observations, _, dones, infos = vec_env.step(np.zeros(2, int))
    assert dones.all()
    assert infos[0]["terminal_observation"].shape == (4, 84, 84)
    assert infos[0]["TimeLimit.truncated"]
    PPO("CnnPolicy", vec_env, n_steps=8, batch_size=8, n_epochs=1, device="cpu").learn(16)
    vec_env.close()


def test_python_backend_uses_gymnasium_environments():
    with shoal.make("ALE/Pong-v5", 1, backend="python", frameskip=1) as envs:
        assert envs.single_observation_space.shape == (210, 160, 3)
