"""A league over time: membership, matchmaking and dropped members."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._league import League, LeagueSettings

WITH_EXPLOITER = LeagueSettings(
    size=4,
    exploiter_share=0.2,
    exploiter_window=10,
    exploiter_win_rate=0.7,
    exploiter_max_episodes=40,
)


def names(league):
    return [member.name for member in league.members]


def play(league, opponent, outcomes, by="main"):
    for outcome in outcomes:
        league.record(opponent, outcome, by=by)


def test_initial_members_are_the_scripted_players():
    league = League(LeagueSettings())
    assert names(league) == ["weak", "strong"]
    assert {(row.player, row.role) for row in league.table(0)} == {
        ("main", "main"),
        ("weak", "scripted"),
        ("strong", "scripted"),
    }
    assert League(LeagueSettings(scripted=())).draw(np.random.default_rng(0)) == "main"


def test_snapshot_is_due_after_snapshot_every_episodes():
    league = League(LeagueSettings(snapshot_every=100))
    due = []
    for episodes in range(0, 400, 30):
        if league.is_snapshot_due(episodes):
            league.add_snapshot(step=episodes * 10)
            due.append(episodes)
    assert due == [120, 240, 360]


def test_only_one_snapshot_is_due_after_many_episodes():
    league = League(LeagueSettings(snapshot_every=100))
    assert league.is_snapshot_due(5000)
    league.add_snapshot(step=1)
    assert not league.is_snapshot_due(5000)
    assert not league.is_snapshot_due(5099)
    assert league.is_snapshot_due(5100)


def test_snapshot_has_a_file_and_the_rating_of_the_main_player():
    league = League(LeagueSettings())
    play(league, "weak", [1] * 10)
    name = league.add_snapshot(step=700)
    member = league.member(name)
    assert (member.role, member.step, member.file) == ("snapshot", 700, f"{name}.pt")
    assert league.ratings.rating(name) == league.ratings.rating("main")
    assert league.win_rates()[name] == 0.5
    assert league.add_snapshot(step=700) != name
    assert league.member("weak").file is None


def test_full_league_drops_the_weakest_old_snapshot():
    league = League(LeagueSettings(size=3))
    first, second, third = (league.add_snapshot(step) for step in range(3))
    assert league.collect_dropped() == []
    for _ in range(30):
        play(league, first, [-1])
        play(league, second, [0])
        play(league, third, [1])
    fourth = league.add_snapshot(step=3)
    assert names(league) == ["weak", "strong", first, second, fourth]
    dropped = league.collect_dropped()
    assert [(member.name, member.file) for member in dropped] == [(third, f"{third}.pt")]
    assert league.collect_dropped() == []
    assert third not in league.ratings
    assert league.results.counts("main", third) == (0, 0, 0)

    play(league, fourth, [1] * 60)  # the weakest; droppable once there is a newer snapshot
    league.add_snapshot(step=4)
    assert [member.name for member in league.collect_dropped()] == [fourth]


def test_oldest_of_equal_snapshots_is_dropped():
    league = League(LeagueSettings(size=2))
    added = [league.add_snapshot(step) for step in range(4)]
    assert names(league)[2:] == added[2:]
    assert [member.name for member in league.collect_dropped()] == added[:2]


def test_newest_snapshot_is_kept_when_an_exploiter_joins():
    league = League(WITH_EXPLOITER)
    added = [league.add_snapshot(step) for step in range(4)]
    play(league, added[-1], [1] * 50)
    league.add_exploiter(step=4)
    assert added[-1] in names(league)
    assert [member.name for member in league.collect_dropped()] == added[:1]


def test_exploiters_are_kept_while_snapshots_can_be_dropped():
    league = League(WITH_EXPLOITER)
    exploiters = [league.add_exploiter(step) for step in range(3)]
    snapshots = [league.add_snapshot(step) for step in range(3)]
    assert names(league)[2:] == [*exploiters, snapshots[-1]]
    newest = league.add_exploiter(step=4)  # no older snapshot remains
    assert names(league)[2:] == [*exploiters[1:], snapshots[-1], newest]


def test_matchmaking_uses_recorded_results():
    league = League(LeagueSettings(latest_share=0.2, matchmaking="hard"))
    snapshot = league.add_snapshot(step=0)
    play(league, "weak", [1] * 40)
    play(league, "strong", [-1] * 40)
    random = np.random.default_rng(3)
    drawn = Counter(league.draw(random) for _ in range(2000))
    assert drawn["main"] / 2000 == pytest.approx(0.2, abs=0.03)
    assert drawn["strong"] > 2 * drawn[snapshot] > 20 * drawn["weak"]


def test_old_games_are_discounted():
    league = League(LeagueSettings(half_life=10))
    play(league, "weak", [-1] * 100 + [1] * 100)
    assert league.win_rates()["weak"] > 0.85


def test_games_against_itself_and_dropped_members_are_ignored():
    league = League(LeagueSettings(size=2))
    dropped, *_ = [league.add_snapshot(step) for step in range(3)]
    state = league.state()
    league.record("main", 1)
    league.record(dropped, 1)
    assert league.state() == state


def test_invalid_games():
    league = League(WITH_EXPLOITER)
    with pytest.raises(ValueError, match="'x' is not a member, the members are 'weak', 'strong'"):
        league.record("x", 1)
    with pytest.raises(ValueError, match="'exploiter' is not a member"):
        league.record("exploiter", 1)
    with pytest.raises(ValueError, match="plays only against 'main', got 'weak'"):
        league.record("weak", 1, by="exploiter")
    with pytest.raises(ValueError, match="by must be 'main' or 'exploiter', got 'weak'"):
        league.record("main", 1, by="weak")
    with pytest.raises(ValueError, match="outcome must be 1, 0 or -1"):
        league.record("weak", 5)
    with pytest.raises(ValueError, match="'x' is not a member"):
        league.member("x")
    alone = League(LeagueSettings())
    with pytest.raises(ValueError, match="no exploiter: exploiter_share is 0"):
        alone.record("main", 1, by="exploiter")
    with pytest.raises(ValueError, match="no exploiter: exploiter_share is 0"):
        alone.add_exploiter(step=0)
    assert not alone.exploiter_is_done()


def test_exploiter_is_done_at_its_target_win_rate():
    league = League(WITH_EXPLOITER)
    play(league, "main", [-1] * 5 + [1] * 6, by="exploiter")
    assert not league.exploiter_is_done()  # 6 of the last 10
    play(league, "main", [1], by="exploiter")
    assert league.exploiter_is_done()  # 7 of the last 10


def test_draw_counts_as_half_a_win_of_the_exploiter():
    league = League(WITH_EXPLOITER)
    play(league, "main", [1, 1, 1, 1] + [0] * 6, by="exploiter")
    assert league.exploiter_is_done()


def test_exploiter_is_not_done_before_its_window_is_full():
    league = League(WITH_EXPLOITER)
    play(league, "main", [1] * 9, by="exploiter")
    assert not league.exploiter_is_done()


def test_exploiter_is_done_after_max_episodes():
    league = League(WITH_EXPLOITER)
    play(league, "main", [-1] * 39, by="exploiter")
    assert not league.exploiter_is_done()
    play(league, "main", [-1], by="exploiter")
    assert league.exploiter_is_done()


def test_exploiter_joins_the_league_and_is_reset():
    league = League(WITH_EXPLOITER)
    play(league, "weak", [1] * 10)
    play(league, "main", [1] * 20, by="exploiter")
    rating = league.ratings.rating("exploiter")
    assert rating[0] > league.ratings.rating("main")[0]
    name = league.add_exploiter(step=90)
    assert (league.member(name).role, league.member(name).file) == ("exploiter", f"{name}.pt")
    assert league.ratings.rating(name) == rating
    assert league.win_rates()[name] < 0.1
    assert league.ratings.rating("exploiter") == league.ratings.rating("main")
    assert league.ratings.games("exploiter") == 0
    assert not league.exploiter_is_done()
    play(league, "main", [1] * 9, by="exploiter")
    assert not league.exploiter_is_done()
    play(league, "main", [1], by="exploiter")
    assert league.exploiter_is_done()
    assert league.add_exploiter(step=91) != name


def simulate(league, seed, events):
    """Play random games with snapshots and exploiters; return everything the league reports."""
    random, events_log = np.random.default_rng(seed), []
    for episode in range(events):
        opponent = league.draw(random)
        events_log.append(opponent)
        league.record(opponent, int(random.integers(-1, 2)))
        if league.has_exploiter and random.random() < 0.3:
            league.record("main", int(random.integers(-1, 2)), by="exploiter")
        if league.exploiter_is_done():
            events_log.append(league.add_exploiter(episode))
        if league.is_snapshot_due(episode):
            events_log.append(league.add_snapshot(episode))
        if random.random() < 0.1:
            events_log.append(league.collect_dropped())
    return events_log, league.table(0), league.win_rates()


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    before=st.integers(0, 120),
    league_settings=st.builds(
        LeagueSettings,
        snapshot_every=st.integers(5, 30),
        size=st.integers(2, 5),
        matchmaking=st.sampled_from(["hard", "variance", "even"]),
        half_life=st.none() | st.floats(1, 100),
        exploiter_share=st.sampled_from([0.0, 0.2]),
        exploiter_window=st.integers(1, 10),
        exploiter_max_episodes=st.integers(10, 20),
    ),
)
def test_restored_league_continues_identically(seed, before, league_settings):
    league = League(league_settings)
    simulate(league, seed, before)
    state = json.dumps(league.state())
    restored = League.from_state(league_settings, json.loads(state))
    assert json.dumps(restored.state()) == state
    assert simulate(restored, seed + 1, 60) == simulate(league, seed + 1, 60)
    assert restored.state() == league.state()
    assert len([member for member in league.members if member.file]) <= league_settings.size


def test_numpy_numbers_are_stored_as_plain_data():
    league = League(WITH_EXPLOITER)
    league.is_snapshot_due(np.int64(5))
    league.add_snapshot(np.int64(7))
    play(league, "weak", np.array([1, 0, -1]))
    play(league, "main", np.array([1, 0, -1], np.int8), by="exploiter")
    state = league.state()
    assert json.loads(json.dumps(state)) == state


def test_restore_with_other_settings():
    league = League(LeagueSettings())
    added = [league.add_snapshot(step) for step in range(5)]
    restored = League.from_state(WITH_EXPLOITER, league.state())
    assert names(restored)[2:] == added  # surplus members are dropped by the next snapshot
    restored.record("main", 1, by="exploiter")
    restored.add_snapshot(step=5)
    assert len(names(restored)) == 2 + WITH_EXPLOITER.size
