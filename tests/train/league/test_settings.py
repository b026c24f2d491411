"""Settings of a league."""

import msgspec
import pytest

from shoal.train._league import League, LeagueSettings


def test_invalid_settings_are_rejected():
    read = msgspec.convert({"snapshot_every": 5, "scripted": ["weak"]}, LeagueSettings)
    assert read == LeagueSettings(snapshot_every=5, scripted=("weak",))
    for wrong, problem in [
        ({"snapshot_evry": 5}, "unknown field"),
        ({"size": 1}, ">= 2"),
        ({"matchmaking": "soft"}, "matchmaking"),
        ({"latest_share": 1.5}, "<= 1"),
        ({"exploiter_share": 1.0}, "< 1"),
        ({"half_life": 0}, "> 0"),
        ({"scripted": ["weak", "weak"]}, "each player once"),
        ({"scripted": ["main"]}, "scripted"),
        ({"exploiter_window": 9, "exploiter_max_episodes": 8}, r"exploiter_max_episodes \(8\)"),
    ]:
        with pytest.raises(msgspec.ValidationError, match=problem):
            msgspec.convert(wrong, LeagueSettings)


def test_league_checks_settings_constructed_in_python():
    with pytest.raises(ValueError, match=r">= 2 - at `\$.size`"):
        League(LeagueSettings(size=1))
