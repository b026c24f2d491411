"""``import shoal.sb3`` replaces nothing; ``patch_algorithms`` replaces one method."""

import subprocess
import sys
import textwrap

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm

import shoal
import shoal.sb3

# Prints the attributes of Stable-Baselines3's modules and classes that were replaced or added.
COMPARE = textwrap.dedent(
    """
    import sys
    import stable_baselines3, stable_baselines3.common.env_util, stable_baselines3.common.vec_env

    def snapshot():
        modules = [
            (name, module)
            for name, module in sys.modules.items()
            if name.partition(".")[0] == "stable_baselines3"
        ]
        found = {}
        for name, module in modules:
            for key, value in vars(module).items():
                found[name, key] = value
                if isinstance(value, type):
                    for member, attribute in vars(value).items():
                        found[value.__module__, value.__qualname__, member] = attribute
        return found

    before = snapshot()
    import shoal, shoal.sb3
    exec(sys.argv[1])
    after = snapshot()
    classes = {key[:2] for key in before if len(key) == 3}
    for key in before.keys() | {key for key in after if key[:2] in classes}:
        if key not in before or key not in after or after[key] is not before[key]:
            print(*key)
    """
)


@pytest.fixture(autouse=True)
def no_patch():
    """Undo the patch, also that of an earlier test: ``make_bam_vec_env`` applies it."""
    shoal.sb3.unpatch_algorithms()
    yield
    shoal.sb3.unpatch_algorithms()


def replaced_by(statement):
    """Return the attributes that ``import shoal.sb3`` and a statement replace."""
    command = [sys.executable, "-c", COMPARE, statement]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_import_replaces_nothing_in_stable_baselines3():
    assert replaced_by("") == []


def test_the_patch_replaces_one_method():
    replaced = replaced_by("shoal.sb3.patch_algorithms()")
    assert replaced == ["stable_baselines3.common.base_class BaseAlgorithm _wrap_env"]


def learn(envs):
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, device="cpu")
    model.learn(total_timesteps=256)
    assert model.num_timesteps >= 256
    assert model.n_envs == 4


def test_algorithms_accept_converted_vectors_without_the_patch():
    with shoal.make("CartPole-v1", num_envs=4, statistics=True) as envs:
        learn(shoal.sb3.as_vec_env(envs))


def test_patched_algorithms_accept_vectors_until_the_patch_is_undone():
    original = BaseAlgorithm._wrap_env
    try:
        shoal.sb3.patch_algorithms()
        patched = BaseAlgorithm._wrap_env
        shoal.sb3.patch_algorithms()
        assert BaseAlgorithm._wrap_env is patched
        with shoal.make("CartPole-v1", num_envs=4, statistics=True) as envs:
            learn(envs)
    finally:
        shoal.sb3.unpatch_algorithms()
    assert BaseAlgorithm._wrap_env is original
    shoal.sb3.unpatch_algorithms()
    assert BaseAlgorithm._wrap_env is original
    with shoal.make("CartPole-v1", num_envs=4) as envs, pytest.raises((TypeError, ValueError)):
        learn(envs)
