"""The scripted player, compared with its specification."""

import numpy as np
import pytest

import shoal
from shoal.hockey import BasicOpponent, BasicOpponents, HockeyEnv


def specified(seen, phase, weak):
    """Return the action according to section 4 of the specification."""
    position, velocity = seen[:3], seen[3:6]
    puck, puck_velocity = seen[12:14], seen[14:16]
    gain = 0.5 if weak else 10
    target = np.array([-3.5, 0.0])
    if puck_velocity[0] < 0.5:
        target = np.array([-3.5, puck[1]])
        if position[0] < puck[0] and abs(position[1] - puck[1]) < 0.5:
            distance = np.hypot(*(position[:2] - puck))
            target = np.array([puck[0] + 0.2, puck[1] + 0.1 * puck_velocity[1] * distance])
    error = np.array([*target, np.pi / 3 * np.sin(phase)]) - position
    brakes = np.abs(error / (velocity + 0.01)) < [0.1, 0.1, 1.0]
    action = error * [gain, gain / 5, gain / 2] - 0.5 * velocity * brakes
    return [*np.clip(action, -1, 1), float(0 < seen[16] < 7)]


def phases(seed, players, calls):
    """Return the phases of players with this seed."""
    words = np.random.SeedSequence(seed).generate_state(4).tolist()
    found = np.zeros((calls, players))
    for player in range(players):
        draws = np.random.default_rng([*words, player])
        phase = draws.uniform(0, np.pi)
        for call in range(calls):
            phase += draws.uniform(0, 0.2)
            found[call, player] = phase
    return found


@pytest.mark.parametrize("players", [1, 7, 8, 21])
def test_actions_follow_the_specification(players):
    random = np.random.default_rng(players)
    weak = random.random(players) < 0.5
    team = BasicOpponents(players, weak, seed=3)
    for phase in phases(3, players, 80):
        seen = random.uniform(-4, 4, (players, 18)).astype(np.float32)
        seen[:, 13] = seen[:, 1] + random.uniform(-1, 1, players)
        seen[:, 16] = random.integers(0, 16, players)
        found = team.act(seen)
        expected = [specified(*of) for of in zip(seen.astype(float), phase, weak, strict=True)]
        assert np.abs(found - expected).max() < 2e-4


def test_arrays_may_be_slices():
    seen = np.random.default_rng(0).uniform(-3, 3, (9, 2, 18)).astype(np.float32)
    actions = np.full((9, 8), 5, np.float32)
    one, other = BasicOpponents(9, seed=1), BasicOpponents(9, seed=1)
    assert one.act(seen[:, 1], out=actions[:, 4:]).base is not None
    assert np.array_equal(actions[:, 4:], other.act(np.ascontiguousarray(seen[:, 1])))
    assert (actions[:, :4] == 5).all()
    turned = np.asfortranarray(seen[:, 0])
    assert np.array_equal(one.act(turned), other.act(seen[:, 0].astype(np.float64)))


def test_seed_determines_all_actions():
    seen = np.zeros((4, 18), np.float32)
    team = BasicOpponents(4, weak=True, seed=5)
    first = [team.act(seen) for _ in range(3)]
    team.seed(5)
    assert np.array_equal(first, [team.act(seen) for _ in range(3)])
    assert not np.array_equal(first[0], BasicOpponents(4, weak=True, seed=6).act(seen))
    assert len({row.tobytes() for row in first[0]}) == 4  # each player has a separate stream
    np.random.seed(0)  # the global generator is not used
    before = np.random.get_state()[1].copy()
    team.act(seen)
    assert np.array_equal(before, np.random.get_state()[1])


def test_invalid_arrays():
    team = BasicOpponents(3)
    with pytest.raises(ValueError, match=r"shape \(3, 18\), got \(2, 18\)"):
        team.act(np.zeros((2, 18)))
    with pytest.raises(ValueError, match=r"out must be a float32 array of shape \(3, 4\)"):
        team.act(np.zeros((3, 18)), out=np.zeros((3, 4)))
    frozen = np.zeros((3, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="cannot be written"):
        team.act(np.zeros((3, 18)), out=frozen)
    with pytest.raises(ValueError, match="weak must be a bool or an array of 3 bools"):
        BasicOpponents(3, [True, False])
    with pytest.raises(ValueError, match="num_envs must be a positive integer"):
        BasicOpponents(0)
    with pytest.raises(ValueError, match="obs must have shape"):
        BasicOpponent().act(np.zeros(16))


def test_single_player_equals_the_first_of_a_vector():
    seen = np.random.default_rng(1).uniform(-3, 3, (20, 18))
    one, many = BasicOpponent(weak=True, seed=2), BasicOpponents(1, True, seed=2)
    for row in seen:
        assert np.array_equal(one.act(row), many.act(row[None])[0])
    assert BasicOpponent(keep_mode=False).act(seen[0]).shape == (3,)


def test_no_shots_without_keep_mode():
    seen, actions = np.full((5, 18), 3.0), np.zeros((5, 6), np.float32)
    shooting, other = BasicOpponents(5, seed=2), BasicOpponents(5, seed=2, keep_mode=False)
    assert other.act(seen, out=actions[:, :3]).shape == (5, 3)
    assert np.array_equal(actions[:, :3], shooting.act(seen)[:, :3])
    assert not actions[:, 3:].any()


@pytest.mark.parametrize("weak", [True, False])
def test_builtin_and_separate_opponents_are_equally_strong(weak):
    """The random numbers differ, but the results of matches agree statistically."""
    games = 1500
    actions, wins = np.zeros((games, 8), np.float32), []
    for is_builtin in (True, False):
        kind = "weak" if weak else "strong"
        first, second = BasicOpponents(games, True, 1), BasicOpponents(games, weak, 2)
        ended, lost = np.zeros(games, bool), np.zeros(games, bool)
        with shoal.make("shoal/Hockey-v0", games, opponent=kind if is_builtin else None) as envs:
            observations, _ = envs.reset(seed=6)
            while not ended.all():
                first.act(observations[:, 0], out=actions[:, :4])
                if not is_builtin:
                    second.act(observations[:, 1], out=actions[:, 4:])
                observations, _, terminated, truncated, infos = envs.step(actions)
                lost |= ~ended & (infos["winner"][:, 1] == 1)
                ended |= terminated | truncated
        wins.append(lost.mean())
    assert wins[0] == pytest.approx(wins[1], abs=0.06)


def test_strong_player_beats_an_idle_one():
    env, player = HockeyEnv(), BasicOpponent(weak=False, seed=0)
    won = 0
    for seed in range(20):
        observation, _ = env.reset(seed=seed, one_starting=True)
        over = False
        while not over:
            action = np.hstack([player.act(observation), np.zeros(4)])
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        won += info["winner"] == 1
    env.close()
    assert won >= 5
