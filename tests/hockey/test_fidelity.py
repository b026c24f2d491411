"""Accuracy relative to the reference implementation."""

import json

import numpy as np
import pytest

from tests.hockey import recording as r
from tests.hockey.matches import play

STATISTICS = json.loads((r.DATA / "hockey_stats.json").read_text())["pairings"]
MODES = {"NORMAL": "NORMAL", "SHOOTING": "TRAIN_SHOOTING", "DEFENSE": "TRAIN_DEFENSE"}


@pytest.mark.parametrize("player", [0, 1])
def test_rackets_without_contact(player):
    gold, ours = r.recording(), r.repeated()
    free = r.is_racket_free(gold.obs, player) & r.is_racket_free(gold.next_obs, player)
    assert free.sum() > 2500
    error = np.abs(r.racket(ours.next_obs, player) - r.racket(gold.next_obs, player))[free]
    assert error.max() < 1e-5


def test_fast_rackets_at_the_back():
    """Above the speed limit, a racket is not accelerated, and does not stop at the back."""
    gold, ours = r.recording(), r.repeated()
    rows = 0
    for player, sign in ((0, 1), (1, -1)):
        x, _, _, vx, vy, _ = (sign * r.racket(gold.obs, player)).T
        push = gold.action[:, 4 * player]
        chosen = (np.hypot(vx, vy) >= 10) & (x < -3.5) & (push < 0)
        chosen &= r.is_racket_free(gold.obs, player) & r.is_racket_free(gold.next_obs, player)
        error = np.abs(r.racket(ours.next_obs, player) - r.racket(gold.next_obs, player))[chosen]
        assert (error < 1e-5).all()
        rows += chosen.sum()
    assert rows >= 1


def test_puck_without_contact():
    gold, ours = r.recording(), r.repeated()
    near = r.is_puck_near_wall(gold.obs)
    for player in (0, 1):
        near |= r.is_puck_near(gold.obs, player) | r.is_puck_near(gold.next_obs, player)
    assert (~near).sum() > 2500
    error = np.abs(r.puck(ours.next_obs) - r.puck(gold.next_obs))[~near]
    assert error.max() < 1e-5


def _contacts():
    gold = r.recording()
    before, after = gold.obs[:, 16:].max(1), gold.next_obs[:, 16:].max(1)
    at_racket = r.is_puck_near(gold.obs, 0) | r.is_puck_near(gold.obs, 1)
    at_wall = r.is_puck_near_wall(gold.obs)
    speed = np.hypot(*gold.obs[:, 14:16].T)
    damped = gold.obs[:, 14:16] * np.where(speed > 25, 0.8, 0.999)[:, None]
    struck = np.hypot(*(gold.next_obs[:, 14:16] - damped).T) > 0.1
    return {
        "bounce": at_wall & ~at_racket & struck & (before == 0),
        "hit": at_racket & ~at_wall & struck & (before == 0),
        "held": (before > 1) & (after > 0),
        "shot": (before > 1) & (after == 0),
    }


@pytest.mark.parametrize(
    ("kind", "least"), [("bounce", 150), ("hit", 60), ("held", 300), ("shot", 40)]
)
def test_velocities_after_contacts(kind, least):
    gold, ours = r.recording(), r.repeated()
    chosen = _contacts()[kind]
    assert chosen.sum() >= least
    expected = r.puck(gold.next_obs)[chosen, 2:]
    error = np.hypot(*(r.puck(ours.next_obs)[chosen, 2:] - expected).T)
    relative = error / np.maximum(np.hypot(*expected.T), 1e-3)
    assert np.median(relative) < 0.02
    assert np.percentile(relative, 90) < 0.10


def test_rewards_and_infos():
    gold, ours = r.recording(), r.repeated()
    assert np.array_equal(ours.winner[:, 0], gold.winner)
    assert np.array_equal(ours.winner[:, 1], -gold.winner)
    assert np.array_equal(ours.reward_touch_puck[:, 0], gold.touch)
    assert np.array_equal(ours.next_obs[:, 16:], gold.next_obs[:, 16:])
    # The reference does not distinguish a time limit from a goal.
    assert np.array_equal(ours.terminated | ours.truncated, gold.done)
    assert np.array_equal(ours.terminated, gold.winner != 0)
    same = np.abs(ours.next_obs - gold.next_obs).max(1) < 1e-5
    assert same.mean() > 0.9
    for found, expected in [
        (ours.reward_closeness_to_puck[:, 0], gold.closeness),
        (ours.reward_puck_direction[:, 0], gold.direction),
        (ours.reward, gold.reward),
        (ours.rewards[:, 0], gold.reward),
        (ours.rewards[:, 1], gold.reward_two),
    ]:
        assert np.abs(found - expected)[same].max() < 2e-6
    assert np.abs(ours.next_obs_two - gold.next_obs_two)[same].max() < 1e-5


def _check_match(pairing, games):
    results = play(MODES[pairing["mode"]], pairing["player1"], pairing["player2"], games, seed=1)
    for rate in ("win", "draw", "loss"):
        assert getattr(results, rate) == pytest.approx(pairing[rate], abs=0.045), rate
    assert results.mean_length == pytest.approx(pairing["mean_length"], rel=0.06)


def _name(pairing):
    return f"{pairing['mode']}-{pairing['player1']}-{pairing['player2']}"


@pytest.mark.parametrize("pairing", STATISTICS[1::3], ids=_name)
def test_some_scripted_matches(pairing):
    _check_match(pairing, games=6_000)


@pytest.mark.slow
@pytest.mark.parametrize("pairing", STATISTICS, ids=_name)
def test_scripted_matches(pairing):
    _check_match(pairing, games=20_000)
