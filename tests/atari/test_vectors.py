"""Vectors of Atari games: batches, ends of episodes, seeding, saving and workers."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

from shoal.atari import AtariVectorEnv, VectorAtariEnv
from shoal.errors import ReceiveTimeoutError, SlotFinishedError
from tests.atari.rollouts import COUNTS, assert_same_rollouts, random_rollout

RESET_NO_SLOT = {"reset_mask": np.zeros(3, np.bool_)}
NO_OPENING = {"noop_max": 0, "use_fire_reset": False}


# Batches


def test_batches_of_finished_slots():
    envs = AtariVectorEnv("pong", 6, batch_size=2, noop_max=0)
    assert envs.observation_space.shape == (2, 4, 84, 84)
    assert envs.action_space.shape == (2,)
    alone = AtariVectorEnv("pong", 1, num_threads=1, noop_max=0)
    first, _ = alone.reset(seed=0)
    observations, infos = envs.reset(seed=0)
    seen = {}
    for _ in range(40):
        slots = infos["env_id"]
        assert observations.shape == (2, 4, 84, 84)
        assert len(set(slots.tolist())) == 2
        for slot, observation in zip(slots.tolist(), observations, strict=True):
            seen.setdefault(slot, []).append(observation)
        observations, _, _, _, infos = envs.step(np.full(2, 2))
    assert seen.keys() == set(range(6))
    expected = [first[0], *(alone.step(np.array([2]))[0][0] for _ in range(40))]
    for observed in seen.values():
        np.testing.assert_array_equal(observed, expected[: len(observed)])
    # A reset drops slots in flight.
    observations, infos = envs.reset(seed=0)
    np.testing.assert_array_equal(observations[0], first[0])
    envs.close()
    alone.close()


def test_send_and_recv_with_slots():
    with AtariVectorEnv("pong", 4, num_threads=1) as envs:
        _, infos = envs.reset(seed=0)
        envs.send(np.array([2, 3]), slots=[3, 1])
        observations, rewards, terminations, truncations, infos = envs.recv(slots=[1, 3])
        assert infos["env_id"].tolist() == [1, 3]
        assert len(observations) == len(rewards) == len(terminations) == len(truncations) == 2
        envs.send(np.array([2, 3]), slots=[3, 1])
        with pytest.raises(AlreadyPendingCallError, match="slot 3 is in flight"):
            envs.send(np.array([2, 3]), slots=[3, 2])
        with pytest.raises(AlreadyPendingCallError, match="in flight"):
            envs.save()
        assert sorted(envs.recv()[4]["env_id"]) == [1, 3]


def test_recv_timeout():
    with AtariVectorEnv("pong", 2, batch_size=1) as envs:
        envs.reset(seed=0)
        envs.recv()
        envs.send(np.array([0]), slots=[0])
        with pytest.raises(ReceiveTimeoutError):
            envs.recv(timeout=0.0)
        assert envs.recv()[4]["env_id"].tolist() == [0]


def test_rows_are_labelled_by_slot_after_other_batches():
    with AtariVectorEnv("pong", 3, num_threads=1) as envs:
        envs.reset(seed=0)
        envs.send(np.array([2, 3]), slots=[2, 1])
        envs.recv(slots=[1, 2])
        assert envs.step(np.zeros(3, int))[4]["env_id"].tolist() == [0, 1, 2]


# Ends of episodes


def test_final_observations_and_infos():
    settings = {"episodic_life": True, "noop_max": 0, "num_threads": 1}
    same = AtariVectorEnv("breakout", 3, autoreset_mode="SameStep", **settings)
    later = AtariVectorEnv("breakout", 3, autoreset_mode="NextStep", **settings)
    off = AtariVectorEnv("breakout", 3, autoreset_mode="Disabled", **settings)
    first = [envs.reset(seed=0)[0] for envs in (same, later, off)]
    np.testing.assert_array_equal(first[0], first[2])
    random = np.random.default_rng(0)
    ends = 0
    while ends < 8:
        actions = random.integers(4, size=3)
        observations, rewards, terminations, truncations, infos = same.step(actions)
        expected = later.step(actions)
        by_hand = off.step(actions)
        ended = terminations | truncations
        for got, one, other in zip(
            (rewards, terminations), expected[1:3], by_hand[1:3], strict=True
        ):
            np.testing.assert_array_equal(got, one)
            np.testing.assert_array_equal(got, other)
        assert ("final_obs" in infos) == ended.any()
        if not ended.any():
            continue
        ends += ended.sum()
        np.testing.assert_array_equal(infos["_final_obs"], ended)
        for final in (expected, by_hand):
            np.testing.assert_array_equal(infos["final_obs"][ended], final[0][ended])
            for key in COUNTS:
                np.testing.assert_array_equal(infos["final_info"][key][ended], final[4][key][ended])
        with pytest.raises(SlotFinishedError):
            off.step(actions)
        reset, frame_number = off.reset(options={"reset_mask": ended})
        np.testing.assert_array_equal(observations, reset)
        np.testing.assert_array_equal(infos["frame_number"], frame_number["frame_number"])
        # In next-step mode, a step resets the finished slots and steps the others.
        actions = random.integers(4, size=3)
        np.testing.assert_array_equal(later.step(actions)[0][ended], observations[ended])
        later.reset(seed=ends)
        same.reset(seed=ends)
        off.reset(seed=ends)
    for envs in (same, later, off):
        envs.close()


def test_life_loss_info_does_not_end_the_episode():
    with AtariVectorEnv("breakout", 2, num_threads=1, life_loss_info=True) as envs:
        _, infos = envs.reset(seed=0)
        lives = infos["lives"]
        frame_number = 0
        for _ in range(300):
            _, _, terminations, truncations, infos = envs.step(np.array([1, 1]))
            lost = (infos["lives"] < lives) & (infos["lives"] > 0)
            assert not truncations.any()
            np.testing.assert_array_equal(terminations & (infos["lives"] > 0), lost)
            assert (infos["frame_number"][lost] > 0).all()
            frame_number += lost.sum()
            lives = infos["lives"]
        assert frame_number > 3


def test_statistics_and_unclipped_rewards():
    settings = {"statistics": True, "unclipped_reward": True, "max_num_frames_per_episode": 1200}
    with AtariVectorEnv("space_invaders", 2, num_threads=1, **settings) as envs:
        envs.reset(seed=0)
        total = np.zeros(2)
        random = np.random.default_rng(0)
        seen = 0
        for _ in range(700):
            _, rewards, terminations, truncations, infos = envs.step(random.integers(6, size=2))
            np.testing.assert_array_equal(rewards, np.clip(infos["unclipped_reward"], -1, 1))
            total += infos["unclipped_reward"]
            ended = terminations | truncations
            assert ("episode" in infos) == ended.any()
            if ended.any():
                np.testing.assert_array_equal(infos["_episode"], ended)
                np.testing.assert_array_equal(infos["episode"]["r"][ended], total[ended])
                total[ended] = 0
                seen += 1
        assert seen > 2


# Observations


def test_ram_observations():
    with AtariVectorEnv("pong", 2, num_threads=1, obs_type="ram", stack_num=1) as envs:
        assert envs.single_observation_space.shape == (1, 128)
        observations, _ = envs.reset(seed=0)
        (game, _) = envs.envs
        np.testing.assert_array_equal(observations[0, 0], game._get_emulator().getRAM())
        observations = envs.step(np.array([2, 3]))[0]
        np.testing.assert_array_equal(observations[0, 0], game._emulator.getRAM())
        assert (observations[0] != observations[1]).any()


def test_render():
    with AtariVectorEnv("pong", 2, num_threads=1, render_mode="rgb_array") as envs:
        envs.reset(seed=0)
        first = envs.render()
        assert [picture.shape for picture in first] == [(210, 160, 3)] * 2
        for _ in range(20):
            envs.step(np.array([2, 3]))
        assert any((now != before).any() for now, before in zip(envs.render(), first, strict=True))


def test_vector_of_different_games():
    names = ["pong", "Breakout", "ALE/Seaquest-v5"]
    with AtariVectorEnv(names, num_threads=1) as envs:
        assert envs.games == ("pong", "breakout", "seaquest")
        assert envs.single_action_space.n == 18
        assert len(envs.get_action_meanings()) == 18
        observations, infos = envs.reset(seed=4)
        assert infos["lives"].tolist() == [0, 5, 4]
        for slot, name in enumerate(names):
            with AtariVectorEnv(name, 1, num_threads=1, full_action_space=True) as alone:
                expected, _ = alone.reset(seed=4 + slot)
                np.testing.assert_array_equal(observations[slot], expected[0])
    with AtariVectorEnv(["breakout", "pong"], full_action_space=True, num_threads=1) as envs:
        assert envs.single_action_space.n == 18


def test_games_with_equal_action_sets_keep_them():
    with AtariVectorEnv(["alien", "seaquest"], num_threads=1) as envs:
        assert envs.single_action_space.n == 18
    with AtariVectorEnv(["pong", "pong"], num_threads=1) as envs:
        assert envs.single_action_space.n == 6


def test_modes_and_difficulties():
    with AtariVectorEnv("pong", 3, mode=[0, 1, None], difficulty=[0, 0, 1], num_threads=1) as envs:
        assert [game.settings.mode for game in envs.envs] == [0, 1, None]
        observations, _ = envs.reset(seed=[1, 1, 1])
        for _ in range(60):
            observations = envs.step(np.array([2, 2, 2]))[0]
        assert (observations[0] != observations[1]).any()
        state = envs.envs[2]._emulator.cloneState()
        assert (state.getCurrentMode(), state.getDifficulty()) == (0, 1)


# Randomness


def test_kinds_of_seeds():
    with AtariVectorEnv("pong", 3, num_threads=1) as envs:
        expected, _ = envs.reset(seed=5)
        for seed in (np.int64(5), [5, 6, 7], np.array([5, 6, 7]), (5, np.int32(6), 7)):
            np.testing.assert_array_equal(envs.reset(seed=seed)[0], expected)
        partly, _ = envs.reset(seed=[5, None, 7])
        np.testing.assert_array_equal(partly[[0, 2]], expected[[0, 2]])
        large = [envs.reset(seed=2**40 + k)[1]["frame_number"].tolist() for k in range(4)]
        assert any(counts != large[0] for counts in large)
        assert envs.reset(seed=2**40)[1]["frame_number"].tolist() == large[0]


def test_without_a_seed_games_differ():
    starts = set()
    for _ in range(3):
        with AtariVectorEnv("pong", 4, num_threads=1) as envs:
            starts.update(envs.reset()[1]["frame_number"].tolist())
    assert len(starts) > 3


def test_seed_argument_of_vector_atari_env():
    for seed in (0, 7):
        old, new = (
            VectorAtariEnv("Pong", 2, num_threads=1, seed=seed),
            AtariVectorEnv("pong", 2, num_threads=1),
        )
        np.testing.assert_array_equal(old.reset()[0], new.reset(seed=seed)[0])
        np.testing.assert_array_equal(old.reset()[0], new.reset()[0])
        old.close()
        new.close()


@pytest.mark.parametrize(
    ("game", "sticky"), [("breakout", 0.0), ("freeway", 0.25), ("double_dunk", 0.25)]
)
def test_results_do_not_depend_on_the_pool(game, sticky):
    """Also after a second seed, and with start states shared by the slots of a process."""
    settings = {"repeat_action_probability": sticky, "max_num_frames_per_episode": 60}
    results = []
    for num_threads in (1, 3):
        with AtariVectorEnv(game, 5, num_threads=num_threads, **settings) as envs:
            rows = []
            for seed in (3, 11):
                envs.reset(seed=seed)
                rows += random_rollout(envs, 40)
            results.append(rows)
    assert_same_rollouts(*results)


# Saving


@pytest.mark.parametrize(
    ("game", "sticky", "num_threads"),
    [("breakout", 0.0, 1), ("breakout", 0.25, 2), ("double_dunk", 0.25, 1)],
)
def test_saving_and_restoring(game, sticky, num_threads):
    settings = {"repeat_action_probability": sticky, "num_threads": num_threads}
    with (
        AtariVectorEnv(game, 3, **settings) as envs,
        AtariVectorEnv(game, 3, **settings) as others,
    ):
        envs.reset(seed=0)
        list(random_rollout(envs, 30))
        saved, frame_number = envs.save(), envs.reset(options=RESET_NO_SLOT)[1]["frame_number"][0]
        expected = list(random_rollout(envs, 50, seed=2))
        envs.restore(saved)
        assert_same_rollouts(random_rollout(envs, 50, seed=2), expected)
        # Restore into another vector, after pickling, before its first step.
        others.reset(seed=9)
        others.restore(pickle.loads(pickle.dumps(saved)))
        assert_same_rollouts(random_rollout(others, 50, seed=2), expected)
        # Restore all slots from the snapshot of the first one.
        envs.restore(saved[:1] * 2, slots=[2, 1])
        envs.restore(saved[:1], slots=[0])
        observations = envs.step(np.array([2, 2, 2]))[0]
        if sticky == 0.0:
            np.testing.assert_array_equal(observations[0], observations[2])
        with pytest.raises(ValueError, match="2 saved games for 3 slots"):
            envs.restore(saved[:2])
        with pytest.raises(TypeError, match="expected a game that save"):
            envs.restore([*saved[:2], 5])
        # A slot that is not reset returns the restored observation.
        envs.restore(saved)
        shown, infos = envs.reset(options={"reset_mask": np.array([False, True, False])})
        np.testing.assert_array_equal(shown[0], saved[0].stack)
        assert infos["frame_number"][0] == frame_number
    with AtariVectorEnv("pong", 3, num_threads=1) as envs:
        envs.reset()
        with pytest.raises(ValueError, match="saved with"):
            envs.restore(saved)


def test_saving_some_slots_while_others_are_in_flight():
    with AtariVectorEnv("pong", 4, batch_size=2) as envs:
        slots = envs.reset(seed=0)[1]["env_id"]
        assert len(envs.save(slots)) == 2
        others = sorted({*range(4)} - {*slots.tolist()})
        with pytest.raises(AlreadyPendingCallError, match="in flight"):
            envs.save(others)


def test_finished_slot_cannot_be_saved():
    with AtariVectorEnv("pong", 2, num_threads=1, max_num_frames_per_episode=4) as envs:
        envs.reset(seed=0)
        saved = envs.save()
        envs.step(np.zeros(2, int))
        with pytest.raises(SlotFinishedError, match="slot 0 has finished its episode"):
            envs.save()
        with pytest.raises(SlotFinishedError):
            envs.restore(saved)


# Workers


def test_killed_worker_is_replaced_and_truncates_its_slots():
    with AtariVectorEnv("pong", 4, num_threads=2, on_crash="restart", **NO_OPENING) as envs:
        envs.reset(seed=0)
        list(random_rollout(envs, 5))
        os.kill(envs.pool.call(_process, slots=[0])[0], signal.SIGKILL)
        _, rewards, terminations, truncations, infos = envs.step(np.zeros(4, int))
        assert truncations.tolist() == [True, True, False, False]
        assert infos["crashed"].tolist() == [True, True, False, False]
        assert infos["episode_frame_number"].tolist() == [0, 0, 24, 24]
        assert not rewards.any()
        assert not terminations.any()
        assert "crashed" not in envs.step(np.zeros(4, int))[4]


def _process(_game):
    return os.getpid()


def test_views_equal_copies():
    copies = AtariVectorEnv("breakout", 4, num_threads=1)
    views = AtariVectorEnv("breakout", 4, num_threads=2, copy=False)
    copies.reset(seed=0)
    views.reset(seed=0)
    assert_same_rollouts(random_rollout(views, 40), random_rollout(copies, 40))
    copies.close()
    views.close()


def test_close_ends_all_processes():
    children = set(_children())
    with AtariVectorEnv("pong", 2, num_threads=2) as envs:
        envs.reset()
        envs.step(np.zeros(2, int))
    deadline = time.monotonic() + 5
    while set(_children()) - children and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(_children()) <= children


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()
