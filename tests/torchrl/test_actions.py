"""Actions of every space reach the environments unchanged."""

import numpy as np
import pytest
from gymnasium import spaces

import shoal

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from torchrl.envs import check_env_specs  # noqa: E402

import shoal.torchrl  # noqa: E402
from tests.torchrl.vectors import SLOTS, random_envs  # noqa: E402


def test_actions_of_every_space():
    kinds = spaces.Dict(
        choice=spaces.Discrete(4, start=-1),
        small=spaces.Discrete(3, dtype=np.int8),
        uniform=spaces.MultiDiscrete([3, 3], start=[1, 2]),
        mixed=spaces.MultiDiscrete([2, 5, 3], start=[0, 7, -1]),
        bits=spaces.MultiBinary(4),
        push=spaces.Box(-1, 1, (2,), np.float64),
        lever=spaces.Box(-1, 1, (), np.float32),
        pair=spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 9, (2,), np.int32))),
    )
    for is_categorical in (True, False):
        env = shoal.torchrl.make(
            random_envs(spaces.Discrete(2), kinds),
            backend="inline",
            categorical_action_encoding=is_categorical,
        )
        check_env_specs(env)
        env.reset()
        for sub_env in env.vector.envs:
            sub_env.unwrapped.received.clear()
        sent = [env.rand_step(env.reset())["action"] for _ in range(10)]
        assert len(sent) == 10
        for slot, sub_env in enumerate(env.vector.envs):
            for actions, received in zip(sent, sub_env.unwrapped.received, strict=True):
                assert received in kinds
                action = actions[slot]
                numbers = {
                    key: action[key]
                    if is_categorical
                    else torch.cat([part.argmax(-1, True) for part in split(action[key], sizes)])
                    for key, sizes in {"choice": 4, "small": 3, "mixed": [2, 5, 3]}.items()
                }
                uniform = action["uniform"] if is_categorical else action["uniform"].argmax(-1)
                assert received["choice"] == numbers["choice"].item() - 1
                assert received["small"] == numbers["small"].item()
                assert (
                    received["mixed"].tolist()
                    == (numbers["mixed"] + torch.tensor([0, 7, -1])).tolist()
                )
                assert received["uniform"].tolist() == (uniform + torch.tensor([1, 2])).tolist()
                assert received["bits"].tolist() == action["bits"].tolist()
                assert received["push"].tolist() == action["push"].tolist()
                assert received["lever"].shape == ()
                assert received["lever"] == action["lever"].item()
                assert received["pair"][1].tolist() == action["pair", "1"].tolist()
        env.close()


def split(one_hot, sizes):
    return one_hot.split(sizes, -1)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_one_hot_actions_of_any_dtype(dtype):
    env = shoal.torchrl.make(random_envs(), backend="inline")
    env.step(env.reset().set("action", torch.tensor([[0, 1], [1, 0], [0, 1]], dtype=dtype)))
    assert [sub_env.unwrapped.received for sub_env in env.vector.envs] == [[1], [0], [1]]
    env.close()


def test_float_actions_of_multi_binary_spaces():
    env = shoal.torchrl.make(random_envs(actions=spaces.MultiBinary(2)), backend="inline")
    env.step(env.reset().set("action", torch.tensor([[0.0, 1.0]] * SLOTS)))
    assert env.vector.envs[2].unwrapped.received[0].tolist() == [0, 1]
    env.close()
