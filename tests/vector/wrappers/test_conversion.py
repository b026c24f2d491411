"""Conversion to arrays of other libraries, in every autoreset mode."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

import shoal
from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv, wrappers
from tests.vector.wrappers.playing import PARTS, factory_of, random_env

torch = pytest.importorskip("torch")

try:
    import gymnasium.wrappers.array_conversion  # noqa: F401
except DependencyNotInstalled as missing:
    pytest.skip(str(missing), allow_module_level=True)


def as_numpy(value):
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: as_numpy(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(as_numpy(part) for part in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        entries = np.empty_like(value)
        entries[:] = [as_numpy(entry) for entry in value]
        return entries
    assert not isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize("mode", AutoresetMode)
def test_tensors(mode):
    ours = wrappers.NumpyToTorch(
        SyncVectorEnv([factory_of("CartPole-v1")] * 3, autoreset_mode=mode)
    )
    plain = SyncVectorEnv([factory_of("CartPole-v1")] * 3, autoreset_mode=mode)
    results, expected = [ours.reset(seed=1)], [plain.reset(seed=1)]
    for _ in range(40):
        action = plain.action_space.sample()
        results.append(ours.step(torch.tensor(action)))
        expected.append(plain.step(action))
        mask = expected[-1][2] | expected[-1][3]
        if mode is AutoresetMode.DISABLED and mask.any():
            results.append(ours.reset(options={"reset_mask": torch.tensor(mask)}))
            expected.append(plain.reset(options={"reset_mask": mask}))
    # Compared at the end, to detect memory that is overwritten.
    for got, expected_result in zip(results, expected, strict=True):
        assert all(isinstance(part, torch.Tensor) for part in got[:-1])
        assert_identical(as_numpy(got), expected_result)
    ours.close()
    plain.close()


@pytest.mark.parametrize("info_format", ["dict", "list", "pre-1.0"])
def test_infos_in_all_formats(info_format):
    envs = shoal.make(
        random_env(PARTS),
        3,
        backend="inline",
        autoreset_mode="SameStep",
        info_format=info_format,
    )
    with wrappers.NumpyToTorch(envs, device="cpu") as envs:
        observations, _ = envs.reset(seed=1)
        assert isinstance(observations["c"][0], torch.Tensor)
        texts = finals = 0
        for _ in range(40):
            *_, infos = envs.step(torch.tensor([0, 1, 2]))
            parts = infos if info_format == "list" else [infos]
            for info in parts:
                texts += "text" in info
                final = info.get("final_obs", info.get("final_observation"))
                if final is not None:
                    finals += 1
                    final = final if info_format == "list" else next(filter(None, final))
                    assert isinstance(final["b"], torch.Tensor)
        assert texts > 5
        assert finals > 5
        assert envs.device == "cpu"


def test_numpy_to_numpy():
    with wrappers.ArrayConversion(
        SyncVectorEnv([random_env(spaces.Discrete(3))] * 2), env_xp=np, target_xp=np
    ) as envs:
        observations, _ = envs.reset(seed=0)
        assert isinstance(observations, np.ndarray)
        envs.step(torch.tensor([0, 1]))


@pytest.mark.parametrize("name", ["JaxToNumpy", "JaxToTorch"])
def test_error_names_the_missing_library(name):
    try:
        import jax  # noqa: F401
    except ImportError:
        envs = SyncVectorEnv([factory_of("CartPole-v1")])
        with envs, pytest.raises(DependencyNotInstalled, match="jax"):
            getattr(wrappers, name)(envs)
