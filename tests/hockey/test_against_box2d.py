"""The solver compared with Box2D, from random states."""

import numpy as np
import pytest

import shoal

pytest.importorskip("Box2D")

from benchmarks.hockey_scene import HockeyScene


def random_states(random, count):
    """Return states with contacts: at walls, between bodies, in corners."""
    states = np.zeros((count, 18), np.float32)
    states[:, [0, 6]] = [-1, 1] * random.uniform(0.6, 3.45, (count, 2))
    states[:, [1, 7]] = random.uniform(-2.85, 2.85, (count, 2))
    states[:, [2, 8]] = random.uniform(-1.1, 1.1, (count, 2))
    states[:, [3, 4, 9, 10]] = random.uniform(-9, 9, (count, 4))
    states[:, [5, 11]] = random.uniform(-8, 8, (count, 2))
    states[:, 12] = random.uniform(-3.65, 3.65, count)
    states[:, 13] = random.uniform(-3.05, 3.05, count)
    states[:, 14:16] = random.normal(0, 15, (count, 2))
    # Half of the pucks touch a racket.
    racket = random.integers(0, 2, count) * 6
    rows = np.arange(count)[: count // 2]
    angle, distance = random.uniform(-np.pi, np.pi, (2, len(rows)))
    distance = 0.25 + 0.12 * np.abs(distance)
    states[rows, 12] = states[rows, racket[rows]] + distance * np.cos(angle)
    states[rows, 13] = states[rows, racket[rows] + 1] + distance * np.sin(angle)
    states[rows, 12:14] = np.clip(states[rows, 12:14], (-3.65, -3.05), (3.65, 3.05))
    return states


def between_two(random, count):
    """Return states with the puck between both rackets."""
    states = np.zeros((count, 18), np.float32)
    states[:, 12] = random.uniform(-0.3, 0.3, count)
    states[:, 13] = random.uniform(-2, 2, count)
    states[:, [0, 6]] = states[:, [12]] + [-1, 1] * random.uniform(0.28, 0.4, (count, 2))
    states[:, [1, 7]] = states[:, [13]] + random.uniform(-0.3, 0.3, (count, 2))
    states[:, [2, 8]] = random.uniform(-0.3, 0.3, (count, 2))
    states[:, [3, 4, 9, 10]] = random.uniform(-4, 4, (count, 4))
    states[:, 14:16] = random.uniform(-0.8, 0.8, (count, 2))
    return states


def steps_of_both(states, random):
    """Compute one step from each state with Box2D and with the kernel."""
    count = len(states)
    spins = random.uniform(-60, 60, count).astype(np.float32)
    actions = random.uniform(-1, 1, (count, 8)).astype(np.float32)
    expected = []
    for state, spin, action in zip(states, spins, actions, strict=True):
        scene = HockeyScene(keep_mode=False)
        scene.set_state(state, float(spin))
        expected.append(scene.step(action))
    with shoal.make("shoal/Hockey-v0", count) as envs:
        envs.set_attr("keep_mode", False)
        envs.reset(seed=0)
        envs.state["observation"], envs.state["puck_spin"] = states, spins
        found = envs.step(actions)[0][:, 0].astype(np.float64)
    return found, np.array(expected)


POSITIONS, VELOCITIES = [0, 1, 2, 6, 7, 8, 12, 13], [3, 4, 5, 9, 10, 11, 14, 15]


@pytest.mark.parametrize("seed", [1, 2])
def test_one_step_from_random_states(seed):
    random = np.random.default_rng(seed)
    states = random_states(random, 2500)
    found, expected = steps_of_both(states, random)
    error = np.abs(found - expected)
    assert (np.abs(expected - states)[:, 14:16].max(1) > 2.0).sum() > 400  # had a contact
    # Rounding differences can change the number of solver iterations; almost all results agree.
    for columns, close in ((POSITIONS, 1e-4), (VELOCITIES, 1e-3)):
        worst = error[:, columns].max(1)
        assert np.mean(worst < close) > 0.9
        assert np.percentile(worst, 98.5) < 100 * close


def test_puck_between_both_rackets():
    random = np.random.default_rng(3)
    found, expected = steps_of_both(between_two(random, 600), random)
    error = np.abs(found - expected)
    assert np.median(error[:, VELOCITIES].max(1)) < 0.02
    assert np.median(error[:, POSITIONS].max(1)) < 0.002
