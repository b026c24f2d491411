"""`ShoalEnv`: rollouts, collectors, specs, seeds, crashes and closing."""

import gc
import sys
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import MissingExtraError, SeedError
from shoal.testing import ProbeEnv, assert_identical
from tests.faulty import FaultyEnv, fault

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from tensordict import TensorDict  # noqa: E402
from torchrl.collectors import Collector  # noqa: E402
from torchrl.envs import (  # noqa: E402
    Compose,
    GymEnv,
    GymWrapper,
    RewardSum,
    StepCounter,
    TransformedEnv,
    check_env_specs,
)

import shoal.torchrl  # noqa: E402
from shoal.torchrl import ShoalEnv  # noqa: E402
from tests.torchrl.vectors import (  # noqa: E402
    DISABLED,
    SEED,
    SLOTS,
    STEPS,
    VECTORS,
    plain_rollout,
    random_actions,
    random_envs,
    rows_of,
    scripted,
    vector_observations,
    without_text,
)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("kind", VECTORS)
def test_rollout_equals_a_plain_vector(kind, mode):
    actions = random_actions()
    env = ShoalEnv(VECTORS[kind](mode), categorical_action_encoding=True)
    env.set_seed(SEED)
    rollout = env.rollout(STEPS, scripted(actions), break_when_any_done=False)
    expected = plain_rollout(
        VECTORS["kernel" if kind == "kernel" else "inline"](DISABLED), lambda _, step: actions[step]
    )
    assert_identical(rows_of(rollout), expected)
    assert rollout["next", "done"].sum() > (0 if kind == "kernel" else 10)
    env.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_consecutive_rollouts_equal_a_plain_vector(mode):
    env = shoal.torchrl.make(random_envs(), autoreset_mode=mode, categorical_action_encoding=True)
    plain = VECTORS["inline"](DISABLED)
    env.set_seed(SEED)
    seed = SEED
    for _ in range(6):
        rollout = env.rollout(STEPS, scripted(random_actions()))  # ends with the first episode
        steps = rollout.shape[1]
        observations, _ = plain.reset(seed=seed)
        seed = None
        for step in range(steps):
            assert_identical(vector_observations(rollout[:, step]), observations)
            observations, *_ = plain.step(random_actions()[step])
            assert_identical(vector_observations(rollout[:, step]["next"]), observations)
        assert rollout["next", "done"][:, -1].any()
    env.close()
    plain.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_break_when_all_done_does_not_step_finished_slots(mode):
    env = shoal.torchrl.make(
        random_envs(), autoreset_mode=mode, backend="inline", categorical_action_encoding=True
    )
    env.set_seed(SEED)
    actions = random_actions(200)
    rollout = env.rollout(
        200, scripted(actions), break_when_any_done=False, break_when_all_done=True
    )
    done = rollout["next", "done"][..., 0]
    assert done[:, -1].all()
    lengths = (~done).sum(1) + 1
    assert len(set(lengths.tolist())) > 1
    steps = [len(sub_env.unwrapped.received) for sub_env in env.vector.envs]
    assert steps == lengths.tolist()
    plain = plain_rollout(VECTORS["inline"](DISABLED), lambda _, step: actions[step], 200)
    for slot, length in enumerate(lengths.tolist()):
        for step in range(length):
            actual = rollout[slot, step]
            assert np.array_equal(actual["next", "place"], plain[step][1]["place"][slot])
            assert np.array_equal(actual["next", "reward"], plain[step][2][slot])
    env.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_collector_equals_a_plain_vector(mode):
    def policy(tensordict):
        is_up = (tensordict["place"][:, 0, 0] > 0).long()
        return tensordict.set("action", torch.nn.functional.one_hot(is_up, 2))

    env = shoal.torchrl.make(random_envs(), autoreset_mode=mode)
    env.set_seed(SEED)
    collector = Collector(env, policy, frames_per_batch=5 * SLOTS, total_frames=STEPS * SLOTS)
    batches = [batch.clone() for batch in collector]
    actual = torch.cat(batches, 1)
    expected = plain_rollout(
        VECTORS["inline"](DISABLED),
        lambda observations, _: (observations["place"][:, 0, 0] > 0).astype(np.int64),
    )
    for step, (before, after, rewards, *_, done) in enumerate(expected):
        one_hot = np.eye(5, dtype=np.int64)
        assert np.array_equal(actual["place"][:, step], before["place"])
        assert np.array_equal(actual["next", "place"][:, step], after["place"])
        assert np.array_equal(actual["kind"][:, step], one_hot[before["kind"] - 2])
        assert np.array_equal(actual["next", "reward"][:, step], rewards)
        assert np.array_equal(actual["next", "done"][:, step], done)
    episodes = int(actual["next", "done"][:, :-1].sum()) + SLOTS
    assert len(actual["collector", "traj_ids"].unique()) == episodes
    collector.shutdown()
    assert env.vector.closed


def test_transforms_reset_at_the_end_of_episodes():
    env = TransformedEnv(
        shoal.torchrl.make(random_envs(), categorical_action_encoding=True),
        Compose(StepCounter(), RewardSum()),
    )
    check_env_specs(env)
    rollout = env.rollout(60, break_when_any_done=False)
    for slot in rollout:
        count, total = 0, 0.0
        for step in slot:
            count, total = count + 1, total + step["next", "reward"].item()
            assert step["next", "step_count"].item() == count
            assert step["next", "episode_reward"].item() == pytest.approx(total, abs=1e-4)
            if step["next", "done"]:
                count, total = 0, 0.0
    env.close()


@pytest.mark.parametrize("is_categorical", [True, False])
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    "source", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1", random_envs()]
)
def test_values_match_specs(source, mode, is_categorical):
    env = shoal.torchrl.make(
        source, SLOTS, autoreset_mode=mode, categorical_action_encoding=is_categorical
    )
    check_env_specs(env)
    env.close()


@pytest.mark.parametrize("device", [None, "cpu"])
def test_device_of_tensors(device):
    env = shoal.torchrl.make("CartPole-v1", 2, device=device)
    expected = None if device is None else torch.device(device)
    assert env.device == env.rollout(3).device == env.reset().device == expected
    env.close()


def test_to_another_device():
    env = shoal.torchrl.make("CartPole-v1", 2)
    assert env.to("cpu") is env
    check_env_specs(env)
    assert env.rollout(3).device == torch.device("cpu")
    env.close()


def test_observations_and_flags_share_memory(monkeypatch):
    env = shoal.torchrl.make("CartPole-v1", 2, categorical_action_encoding=True)
    results, step = [], env.vector.pool.step
    monkeypatch.setattr(
        env.vector.pool, "step", lambda actions: results.append(step(actions)) or results[-1]
    )
    data = env.step(env.rand_action(env.reset()))["next"]
    observations, _, terminated, truncated, _ = results[0]
    assert np.shares_memory(data["observation"].numpy(), observations)
    assert np.shares_memory(data["terminated"].numpy(), terminated)
    assert np.shares_memory(data["truncated"].numpy(), truncated)
    env.close()


class TestSeeds:
    def test_reset_after_set_seed_returns_the_seeded_episodes(self):
        env = shoal.torchrl.make(random_envs(), backend="inline", categorical_action_encoding=True)
        plain = VECTORS["inline"](DISABLED)
        for _ in range(2):  # repeated seeding gives the same episodes
            env.set_seed(3)
            expected, _ = plain.reset(seed=3)
            assert_identical(vector_observations(env.reset()), expected)
            expected, _ = plain.reset()
            assert_identical(vector_observations(env.reset()), expected)
        env.close()
        plain.close()

    def test_partial_reset_after_set_seed(self):
        env = shoal.torchrl.make(random_envs(), backend="inline", categorical_action_encoding=True)
        plain = VECTORS["inline"](DISABLED)
        env.set_seed(3)
        expected, _ = plain.reset(seed=3)
        for slots in ([1], [0, 2]):
            mask = torch.zeros(SLOTS, 1, dtype=torch.bool)
            mask[slots] = True
            actual = env.reset(TensorDict({"_reset": mask}, [SLOTS]))
            assert np.array_equal(actual["place"][slots], expected["place"][slots])
        expected, _ = plain.reset(options={"reset_mask": np.array([True, False, False])})
        actual = env.reset(TensorDict({"_reset": ~mask}, [SLOTS]))
        assert not np.array_equal(actual["place"][1], expected["place"][1])
        env.close()
        plain.close()

    def test_set_seed_without_reset_affects_the_next_step(self):
        envs = [shoal.torchrl.make(random_envs(), backend="inline") for _ in range(2)]
        after = []
        for number, env in enumerate(envs):
            env.rollout(number + 2, break_when_any_done=False)
            env.set_seed(3)
            data = TensorDict({"action": torch.tensor([[1, 0]] * SLOTS)}, [SLOTS])
            after.append(env.step(data)["next"])
            env.close()
        assert torch.equal(after[0]["place"], after[1]["place"])

    def test_reset_with_seed_and_options(self):
        env = shoal.torchrl.make([ProbeEnv] * 2, backend="inline", wrappers=[without_text])
        plain = shoal.make([ProbeEnv] * 2, backend="inline")
        expected, _ = plain.reset(seed=[4, 9])
        assert np.array_equal(env.reset(seed=[4, 9])["vector"], expected["vector"])
        env.set_seed(5)  # a reset with options resets again, with the same seed
        expected, _ = plain.reset(seed=5)
        assert np.array_equal(env.reset(options={"level": 1})["vector"], expected["vector"])
        with pytest.raises(SeedError):
            env.set_seed(-1)
        env.close()
        plain.close()

    def test_seeds_follow_the_vectors_seeding(self):
        make = partial(shoal.make, "CartPole-v1", 2, seeding="independent", autoreset_mode=DISABLED)
        env, plain = ShoalEnv(make()), make()
        env.set_seed(1)
        assert np.array_equal(env.reset()["observation"], plain.reset(seed=1)[0])
        env.close()
        plain.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_crash_truncates_the_episode(mode):
    env = shoal.torchrl.make(
        [partial(FaultyEnv, label) for label in range(2)],
        backend="process",
        start="fork",
        workers=2,
        on_crash="restart",
        autoreset_mode=mode,
        categorical_action_encoding=True,
    )
    data = env.reset()
    for name in ("nothing", "kill", "nothing"):
        action = torch.tensor([fault("nothing"), fault(name)])
        after, data = env.step_and_maybe_reset(data.set("action", action))
        crashed = name == "kill"
        assert after["next", "truncated"].flatten().tolist() == [False, crashed]
        assert not after["next", "terminated"].any()
        if crashed:  # the final observation is unknown: the last known one is repeated
            assert torch.equal(after["next", "observation"][1], after["observation"][1])
            assert data["observation"][:, 1].tolist() == [2, 0]
    assert data["observation"][:, 1].tolist() == [3, 1]
    env.close()


@pytest.mark.parametrize("is_categorical", [True, False])
@pytest.mark.parametrize(
    "env_id", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Acrobot-v1", "MountainCar-v0"]
)
def test_specs_equal_those_of_gym_env(env_id, is_categorical):
    theirs = GymEnv(env_id, categorical_action_encoding=is_categorical)
    ours = shoal.torchrl.make(env_id, 2, categorical_action_encoding=is_categorical)
    assert ours.observation_spec == theirs.observation_spec.expand(2).to(None)
    assert ours.full_action_spec == theirs.full_action_spec.expand(2)
    assert ours.full_reward_spec == theirs.full_reward_spec.expand(2)
    assert ours.full_done_spec == theirs.full_done_spec.expand(2)
    ours.close()
    theirs.close()


class TestGymWrapper:
    """TorchRL's own wrapper around a Shoal vector."""

    @pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP])
    @pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
    def test_rollout(self, mode, env_id):
        env = GymWrapper(shoal.make(env_id, SLOTS, autoreset_mode=mode))
        check_env_specs(env)
        rollout = env.rollout(60, break_when_any_done=False)
        assert rollout.shape == (SLOTS, 60)
        env.close()

    def test_rollout_equals_that_of_shoal_env(self):
        make = partial(shoal.make, "CartPole-v1", SLOTS, autoreset_mode=DISABLED)
        theirs = GymWrapper(make(), categorical_action_encoding=True)
        ours = ShoalEnv(make(), categorical_action_encoding=True)
        rollouts = []
        for env in (ours, theirs):
            env.set_seed(SEED)
            env.reset(seed=SEED)
            rollouts.append(
                env.rollout(
                    STEPS,
                    scripted(random_actions()),
                    break_when_any_done=False,
                    auto_reset=False,
                    tensordict=env.reset(seed=SEED),
                )
            )
            env.close()
        for key in ("observation", ("next", "observation"), ("next", "reward"), ("next", "done")):
            assert torch.equal(rollouts[0][key], rollouts[1][key])

    def test_next_step_mode_is_rejected(self):
        vector = shoal.make("CartPole-v1", SLOTS)
        with pytest.raises(RuntimeError, match="auto-reset mode"):
            GymWrapper(vector)
        vector.close()


class TestClosing:
    def test_close_closes_the_vector(self):
        before = ProbeEnv.open_count
        env = shoal.torchrl.make([ProbeEnv] * 2, backend="inline", wrappers=[without_text])
        env.rollout(3)
        env.close()
        env.close()
        assert env.is_closed
        assert env.vector.closed
        assert ProbeEnv.open_count == before

    def test_vector_outlives_the_frontend(self):
        vector = shoal.make("CartPole-v1", 2, autoreset_mode=DISABLED)
        env = ShoalEnv(vector)
        env.reset()
        del env
        gc.collect()
        vector.step([0, 1])
        vector.close()

    def test_garbage_collection_closes_environments(self):
        before = ProbeEnv.open_count
        env = shoal.torchrl.make([ProbeEnv] * 2, backend="inline", wrappers=[without_text])
        env.reset()
        del env
        gc.collect()
        assert ProbeEnv.open_count == before


def test_missing_torchrl_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("shoal.torchrl")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchrl", None)
    with pytest.raises(MissingExtraError, match=r'pip install "shoal\[torchrl\]"'):
        import shoal.torchrl  # noqa: F401
