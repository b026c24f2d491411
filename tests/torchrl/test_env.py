"""`ShoalEnv`: rollouts, collectors, specs, seeds, infos and errors."""

import copy
import gc
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import InvalidActionError, MissingExtraError, ResetMaskError, SeedError
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector.wrappers import FilterObservation, VectorWrapper
from tests.faulty import FaultyEnv, fault
from tests.random_environments import RandomEnv

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

PARTS = spaces.Dict(
    place=spaces.Box(-1, 1, (2, 3), np.float32),
    kind=spaces.Discrete(5, start=2),
    more=spaces.Tuple((spaces.MultiBinary(3), spaces.Dict(level=spaces.Box(0, 255, (), np.uint8)))),
)
SLOTS, STEPS, SEED = 3, 40, 7
DISABLED = AutoresetMode.DISABLED


def random_envs(observed=PARTS, actions=None, with_infos=False):
    actions = spaces.Discrete(2) if actions is None else actions
    return [partial(RandomEnv, observed, actions, with_infos=with_infos)] * SLOTS


VECTORS = {
    "kernel": lambda mode: shoal.make("CartPole-v1", SLOTS, autoreset_mode=mode),
    "inline": lambda mode: shoal.make(random_envs(), backend="inline", autoreset_mode=mode),
    "views": lambda mode: shoal.make(
        random_envs(), backend="thread", copy=False, autoreset_mode=mode
    ),
    "processes": lambda mode: shoal.make(
        random_envs(), backend="process", start="fork", autoreset_mode=mode
    ),
    "wrapped": lambda mode: VectorWrapper(
        shoal.make(random_envs(), backend="inline", autoreset_mode=mode)
    ),
    "gymnasium": lambda mode: gymnasium.vector.SyncVectorEnv(random_envs(), autoreset_mode=mode),
    "gymnasium views": lambda mode: gymnasium.vector.SyncVectorEnv(
        random_envs(), autoreset_mode=mode, copy=False
    ),
}


def random_actions(steps=STEPS):
    return np.random.default_rng(SEED).integers(2, size=(steps, SLOTS))


def scripted(actions):
    """Return a policy that returns the given actions in turn."""
    remaining = iter(torch.as_tensor(actions))

    def policy(tensordict):
        return tensordict.set("action", next(remaining))

    return policy


def plain_rollout(vector, choose, steps=STEPS):
    """Step a vector and reset finished slots explicitly; return one row per step.

    ``choose`` is called with the observations and the number of the step, and returns the actions.
    """
    rows = []
    observations, _ = vector.reset(seed=SEED)
    for step in range(steps):
        after, rewards, terminated, truncated, _ = vector.step(choose(observations, step))
        flags = terminated[:, None], truncated[:, None]
        row = observations, after, rewards[:, None].astype(np.float32), *flags, flags[0] | flags[1]
        rows.append(copy.deepcopy(row))
        observations, ended = after, terminated | truncated
        if ended.any():
            observations, _ = vector.reset(options={"reset_mask": ended})
    vector.close()
    return rows


def vector_observations(tensordict):
    """Convert a tensordict with categorical encoding to the observations of a vector."""
    if "observation" in tensordict:
        return tensordict["observation"].numpy()
    return {
        "place": tensordict["place"].numpy(),
        "kind": tensordict["kind"].numpy() + 2,
        "more": (
            tensordict["more", "0"].numpy(),
            {"level": tensordict["more", "1", "level"].numpy()[..., 0]},
        ),
    }


def rows_of(rollout):
    """Convert a rollout to the format of ``plain_rollout``."""
    flags = "terminated", "truncated", "done"
    return [
        (
            vector_observations(step),
            vector_observations(step["next"]),
            *(step["next", key].numpy() for key in ("reward", *flags)),
        )
        for step in rollout.unbind(1)
    ]


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


def without_text(env):
    return gymnasium.wrappers.FilterObservation(env, ["vector", "inner"])


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


class TestBadInput:
    def test_error_names_the_part_without_spec(self):
        vector = shoal.make([ProbeEnv] * 2, backend="inline", autoreset_mode=DISABLED)
        with pytest.raises(TypeError, match=r"no spec for word, which is a Text"):
            ShoalEnv(vector)
        env = ShoalEnv(FilterObservation(vector, ["vector", "inner"]))
        check_env_specs(env)
        env.close()

    @pytest.mark.parametrize(
        ("space", "message"),
        [
            (spaces.Tuple((spaces.Discrete(2), spaces.Text(3))), r"observation\[1\].*Text"),
            (spaces.Dict(a=spaces.Dict(b=spaces.Sequence(spaces.Discrete(2)))), r"a\['b'\].*Sequ"),
            (spaces.Graph(spaces.Box(-1, 1, (2,)), None), "observation.*Graph"),
            (spaces.OneOf([spaces.Discrete(2)]), "observation.*OneOf"),
            (spaces.Dict(a=spaces.Box(0, 9, (2,), np.uint16)), "a: its dtype is uint16"),
            (spaces.MultiDiscrete([[2, 3], [4, 5]]), "one-hot spec for observation"),
        ],
    )
    def test_unsupported_spaces(self, space, message):
        before = ProbeEnv.open_count
        with pytest.raises(TypeError, match=message):
            shoal.torchrl.make(random_envs(space))
        assert ProbeEnv.open_count == before

    def test_make_closes_a_vector_with_unsupported_spaces(self):
        before = ProbeEnv.open_count
        with pytest.raises(TypeError, match="word"):
            shoal.torchrl.make([ProbeEnv] * 2, backend="inline")
        assert ProbeEnv.open_count == before

    def test_invalid_keys(self):
        with pytest.raises(ValueError, match="'reward' is a reserved key of TorchRL"):
            shoal.torchrl.make(random_envs(spaces.Dict(reward=spaces.Discrete(2))))
        with pytest.raises(ValueError, match="info 'place' has the same key as an observation"):
            shoal.torchrl.make(random_envs(), infos={"place": spaces.Discrete(2)})

    def test_not_a_vector(self):
        with pytest.raises(TypeError, match=r"expected a .*VectorEnv, got CartPole"):
            ShoalEnv(gymnasium.make("CartPole-v1").unwrapped)

    @pytest.mark.parametrize(
        ("action", "message"),
        [
            ([[1, 0], [0, 0], [0, 1]], r"action of slot 1 is not one-hot: \[0 0\]"),
            ([[1, 0], [0, 1], [1, 1]], r"action of slot 2 is not one-hot"),
            ([[1, 0, 0]] * 3, r"expected one-hot rows of 2 choices"),
        ],
    )
    def test_invalid_one_hot_actions(self, action, message):
        env = shoal.torchrl.make(random_envs(), backend="inline")
        data = env.reset().set("action", torch.tensor(action))
        with pytest.raises(InvalidActionError, match=message):
            env.step(data)
        assert all(not sub_env.unwrapped.received for sub_env in env.vector.envs)
        env.close()

    @pytest.mark.parametrize("action", [[0, 1, 2], [[0, 1]] * 3, [0.5, 0, 1]])
    def test_invalid_categorical_actions(self, action):
        env = shoal.torchrl.make(random_envs(), backend="inline", categorical_action_encoding=True)
        data = env.reset().set("action", torch.tensor(action))
        with pytest.raises((InvalidActionError, gymnasium.error.InvalidAction)):
            env.step(data)
        assert all(not sub_env.unwrapped.received for sub_env in env.vector.envs)
        env.close()

    def test_wrapped_vector_cannot_step_some_slots(self):
        env = ShoalEnv(VECTORS["wrapped"](DISABLED))
        with pytest.raises(ValueError, match="this vector steps all of its slots"):
            env.rollout(50, break_when_any_done=False, break_when_all_done=True)
        env.close()

    def test_missing_final_observation(self):
        class WithoutInfos(VectorWrapper):
            def step(self, actions):
                *results, _ = self.env.step(actions)
                return *results, {}

        env = ShoalEnv(WithoutInfos(VECTORS["inline"](AutoresetMode.SAME_STEP)))
        with pytest.raises(ValueError, match=r"slot \d .* have no 'final_obs'"):
            env.rollout(50, break_when_any_done=False)
        env.close()

    def test_info_outside_of_its_space(self):
        env = shoal.torchrl.make(
            random_envs(with_infos=True), infos={"text": spaces.Box(0.0, 1.0, ())}
        )
        with pytest.raises(ValueError, match="info 'text' does not fit"):
            env.rollout(50, break_when_any_done=False)
        env.close()

    def test_vector_that_ignores_the_reset_mask(self):
        class IgnoresMask(gymnasium.vector.VectorEnv):
            num_envs = 2
            metadata = {"autoreset_mode": DISABLED}
            single_observation_space = spaces.Box(0, 99, (1,), np.float64)
            single_action_space = spaces.Discrete(2)
            observation_space = spaces.Box(0, 99, (2, 1), np.float64)
            action_space = spaces.MultiDiscrete([2, 2])
            observations = np.zeros((2, 1))

            def reset(self, *, seed=None, options=None):
                self.observations = self.observations + 1
                return self.observations, {}

            def step(self, actions):
                terminated, truncated = np.array([True, False]), np.zeros(2, bool)
                return self.observations, np.ones(2), terminated, truncated, {}

        env = ShoalEnv(IgnoresMask())
        with pytest.raises(ResetMaskError, match="IgnoresMask has reset slot 1"):
            env.rollout(5, break_when_any_done=False)


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
