"""Infos as entries of tensordicts."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from torchrl.envs import check_env_specs  # noqa: E402

import shoal.torchrl  # noqa: E402
from tests.torchrl.vectors import (  # noqa: E402
    DISABLED,
    SEED,
    SLOTS,
    STEPS,
    random_actions,
    random_envs,
    scripted,
)

INFOS = {
    "float": spaces.Box(0.0, 1.0, (), np.float64),
    "array": spaces.Box(0.0, 1.0, (2, 3), np.float32),
    "nested": spaces.Dict(y=spaces.Discrete(9)),
}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_requested_infos(mode):
    envs = random_envs(spaces.Box(-1, 1, (2,)), with_infos=True)
    env = shoal.torchrl.make(
        envs, autoreset_mode=mode, infos=INFOS, categorical_action_encoding=True
    )
    check_env_specs(env)
    plain = shoal.make(envs, autoreset_mode=DISABLED)
    env.set_seed(SEED)
    rollout = env.rollout(STEPS, scripted(random_actions()), break_when_any_done=False)
    _, infos = plain.reset(seed=SEED)
    with_infos = 0
    for step, action in zip(rollout.unbind(1), random_actions(), strict=True):
        assert_infos(step, infos)
        _, _, terminated, truncated, infos = plain.step(action)
        with_infos += assert_infos(step["next"], infos)
        ended = terminated | truncated
        if ended.any():
            _, reset_infos = plain.reset(options={"reset_mask": ended})
            infos = merge_infos(infos, reset_infos, ended)
    assert with_infos > 10
    env.close()
    plain.close()


def assert_infos(data, infos):
    """Compare entries with the infos of a plain vector; return whether it had infos."""
    zeros = {"float": np.zeros(SLOTS), "array": np.zeros((SLOTS, 2, 3))}
    for key, zero in zeros.items():
        expected = infos.get(key, zero).astype(INFOS[key].dtype)
        assert np.array_equal(data[key].numpy().reshape(expected.shape), expected)
    nested = infos.get("nested", {}).get("y", np.zeros(SLOTS, np.int64))
    assert np.array_equal(data["nested", "y"].numpy(), nested)
    return "float" in infos


def merge_infos(infos, reset_infos, ended):
    """Replace the rows of slots that were reset by the infos of the reset."""
    merged = {}
    for key, zero in (("float", np.zeros(SLOTS)), ("array", np.zeros((SLOTS, 2, 3)))):
        mask = ended.reshape(-1, *[1] * (zero.ndim - 1))
        merged[key] = np.where(mask, reset_infos.get(key, zero), infos.get(key, zero))
    ys = (
        part.get("nested", {}).get("y", np.zeros(SLOTS, np.int64)) for part in (reset_infos, infos)
    )
    return {**merged, "nested": {"y": np.where(ended, *ys)}}


def test_statistics_as_infos():
    episode = spaces.Dict(
        r=spaces.Box(-np.inf, np.inf, (), np.float32), l=spaces.Box(0, 500, (), np.int64)
    )
    env = shoal.torchrl.make("CartPole-v1", 4, statistics=True, infos={"episode": episode})
    check_env_specs(env)
    rollout = env.rollout(100, break_when_any_done=False)
    ended = rollout["next", "done"]
    assert ended.sum() > 4
    lengths = rollout["next", "episode", "l"]
    assert torch.equal(lengths > 0, ended)
    assert torch.equal(lengths.float(), rollout["next", "episode", "r"])
    env.close()
