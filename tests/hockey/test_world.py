"""Invariants of every match: bodies stay in the rink, and energy does not grow."""

import itertools

import numpy as np
import pytest

import shoal
from shoal.errors import KernelError
from shoal.hockey import BasicOpponents

MODES = ["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"]


def mixed(count, **options):
    """Return a vector of all modes, keep modes and opponents."""
    envs = shoal.make("shoal/Hockey-v0", count, **options)
    kinds = itertools.cycle(itertools.product(MODES, (True, False), (None, "weak", "strong")))
    chosen = list(itertools.islice(kinds, count))
    for name, values in zip(
        ("mode", "keep_mode", "opponent"), zip(*chosen, strict=True), strict=True
    ):
        envs.set_attr(name, list(values))
    return envs


def check_world(steps, count=4096):
    random = np.random.default_rng(7)
    with mixed(count, copy=False) as envs:
        observations, _ = envs.reset(seed=7)
        for step in range(steps // count):
            actions = random.uniform(-1.2, 1.2, (count, 8)).astype(np.float32)
            if step % 4 < 2:  # sometimes repeat the actions
                actions[::2] = np.sign(actions[::2]) * np.float32(step // 100 % 2)
            observations, rewards, terminated, truncated, _ = envs.step(actions)
            assert np.isfinite(observations).all()
            assert np.isfinite(rewards).all()
            first = np.abs(observations[:, 0])
            # In training modes, the second player may start behind its goal.
            assert first[:, 0].max() <= 235 / 60
            assert first[:, 6].max() <= 3 + 5 / 3 + 1e-6
            assert max(first[:, 1].max(), first[:, 7].max()) <= 200 / 60
            # There are no walls between goal posts; a puck there counts in the next step.
            over = terminated | truncated
            assert first[~over, 12].max() <= 265 / 60 + 13 / 60
            behind = (first[:, 12] > 4.25) & ~over
            assert (first[behind, 13] <= 1.48).all()
            assert first[:, 12].max() <= 5.0
            assert first[:, 13].max() <= 3.2  # the start positions of TRAIN_DEFENSE


def test_bodies_stay_in_the_rink():
    check_world(2_000_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bodies_stay_in_the_rink_for_long():
    check_world(100_000_000)


def energy(state):
    seen = state["observation"].astype(np.float64)
    rackets = seen[:, :12].reshape(-1, 2, 6)
    of_rackets = 58.0 * (rackets[..., 3:5] ** 2).sum(2) + 3.709495 * rackets[..., 5] ** 2
    of_puck = 1.0323623 * (seen[:, 14:16] ** 2).sum(1)
    of_spin = 0.02423184 * state["puck_spin"].astype(np.float64) ** 2
    return 0.5 * (of_rackets.sum(1) + of_puck + of_spin)


@pytest.mark.parametrize("seed", range(3))
def test_energy_does_not_grow_without_actions(seed):
    check_energy(seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_energy_does_not_grow_without_actions_for_long():
    for seed in range(100, 200):
        check_energy(seed)


def check_energy(seed):
    count, random = 6000, np.random.default_rng(seed)
    with shoal.make("shoal/Hockey-v0", count, keep_mode=False, autoreset_mode="Disabled") as envs:
        envs.reset(seed=0)
        state = envs.state["observation"]
        # Anywhere in their halves except the centre zone, where a force pushes rackets back.
        state[:, [0, 6]] = [-1, 1] * random.uniform(0.6, 3.6, (count, 2))
        state[:, [1, 7, 13]] = random.uniform(-2.9, 2.9, (count, 3))
        state[:, [2, 8]] = random.uniform(-0.9, 0.9, (count, 2))
        state[:, [3, 4, 9, 10]] = random.uniform(-8, 8, (count, 4))
        state[:, [5, 11]] = random.uniform(-6, 6, (count, 2))
        state[:, 12] = random.uniform(-3.6, 3.6, count)
        state[:, 14:16] = random.uniform(-40, 40, (count, 2))
        envs.state["puck_spin"] = random.uniform(-80, 80, count)
        envs.state["time"] = 0
        before, driven, over = energy(envs.state), np.zeros(count, bool), np.zeros(count, bool)
        compared = 0
        for _ in range(30):
            seen = envs.state["observation"]
            # The centre zone and angles beyond the limit add energy.
            driven |= (seen[:, 0] > -0.55) | (seen[:, 6] < 0.55)
            driven |= (np.abs(seen[:, [2, 8]]) > 1.04).any(1)
            _, _, terminated, truncated, _ = envs.step(np.zeros((count, 6), np.float32))
            after = energy(envs.state)
            fair = ~driven & ~over
            assert (after[fair] <= before[fair] * (1 + 1e-5) + 1e-4).all()
            compared += int(fair.sum())
            over |= terminated | truncated
            if (terminated | truncated).any():
                envs.reset(options={"reset_mask": terminated | truncated})
            before = energy(envs.state)
        assert compared > count


def test_fast_puck_in_a_goal_counts():
    count, random = 20_000, np.random.default_rng(4)
    with shoal.make("shoal/Hockey-v0", count, autoreset_mode="Disabled") as envs:
        envs.reset(seed=0)
        state = envs.state["observation"]
        state[:, 0] = -1.0  # away from the puck
        state[:, 12] = random.uniform(-3.9, -3.0, count)
        state[:, 13] = random.uniform(-1.2, 1.2, count)
        angle = np.pi + random.uniform(-1.0, 1.0, count)
        speed = random.uniform(20, 80, count)
        state[:, 14:16] = (speed * [np.cos(angle), np.sin(angle)]).T
        scored, over = np.zeros(count, bool), np.zeros(count, bool)
        for _ in range(4):
            observations, _, terminated, _, infos = envs.step(np.zeros((count, 8), np.float32))
            scored |= (infos["winner"][:, 0] == -1) & ~over
            behind = (observations[:, 0, 12] < -4.3) & ~terminated & ~over
            assert (np.abs(observations[behind, 0, 13]) < 1.48).all()
            over |= terminated
            if terminated.any():
                envs.reset(options={"reset_mask": terminated})
        assert scored.mean() > 0.5


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e12])
def test_states_that_are_out_of_range(value):
    with shoal.make("shoal/Hockey-v0", 20) as envs:
        envs.reset(seed=0)
        envs.state["observation"][13, 2] = value
        with pytest.raises(KernelError, match=r"slot 13.*the state has numbers that are out of"):
            envs.step(np.zeros((20, 8), np.float32))
        observations, *_ = envs.step(np.zeros((20, 8), np.float32))  # the failed slots are reset
        assert np.isfinite(observations).all()


def rotated(observations):
    return observations[:, ::-1]


def test_players_are_symmetric():
    """Swapping the players and rotating the rink gives the same match."""
    count, random = 512, np.random.default_rng(3)
    with (
        shoal.make("shoal/Hockey-v0", count) as envs,
        shoal.make("shoal/Hockey-v0", count) as swapped,
    ):
        envs.reset(seed=1, options={"one_starting": True})
        swapped.reset(seed=1, options={"one_starting": False})
        one, two = BasicOpponents(count, seed=1), BasicOpponents(count, weak=True, seed=2)
        swapped.state["observation"] = envs.pool.latest()[:, 1]
        observations, mirrored = envs.pool.latest(), rotated(envs.pool.latest())
        equal = np.ones(count, bool)
        met = 0
        for step in range(200):
            if step % 3:
                actions = random.uniform(-1, 1, (count, 2, 4)).astype(np.float32)
            else:
                actions = np.stack([one.act(observations[:, 0]), two.act(observations[:, 1])], 1)
            observations, _, terminated, truncated, infos = envs.step(actions.reshape(-1, 8))
            mirrored, _, other_terminated, other_truncated, other_infos = swapped.step(
                actions[:, ::-1].reshape(-1, 8)
            )
            same = np.abs(rotated(mirrored) - observations).max((1, 2)) == 0
            met += int((equal & ~same).sum())
            equal &= same
            assert np.array_equal(infos["rewards"][equal], other_infos["rewards"][equal, ::-1])
            assert np.array_equal(terminated[equal], other_terminated[equal])
            assert np.array_equal(truncated[equal], other_truncated[equal])
            equal &= ~(terminated | truncated)  # the starter of the next match is not swapped
        assert met == 0


def trajectory(workers, count=600, **options):
    random = np.random.default_rng(11)
    with mixed(count, workers=workers, **options) as envs:
        results = [envs.reset(seed=5)[0]]
        for _ in range(120):
            step = envs.step(random.uniform(-1, 1, (count, 8)).astype(np.float32))
            results += [*step[:4], *step[4].values()]
    return results


def test_results_do_not_depend_on_threads():
    alone = trajectory(0)
    for workers in (1, 3):
        for found, expected in zip(trajectory(workers), alone, strict=True):
            assert np.array_equal(found, expected)


def test_slot_does_not_depend_on_adjacent_slots():
    """Matches are stepped in blocks of eight, but independently."""
    random = np.random.default_rng(2)
    actions = random.uniform(-1, 1, (150, 11, 8)).astype(np.float32)
    with shoal.make("shoal/Hockey-v0", 11) as envs:
        first, _ = envs.reset(seed=40)
        together = [first, *(envs.step(action)[0] for action in actions)]
    for slot in (0, 7, 8, 10):
        with shoal.make("shoal/Hockey-v0", 1) as envs:
            first, _ = envs.reset(seed=40 + slot)
            alone = [first, *(envs.step(action[[slot]])[0] for action in actions)]
        for found, expected in zip(alone, together, strict=True):
            assert np.array_equal(found[0], expected[slot])
