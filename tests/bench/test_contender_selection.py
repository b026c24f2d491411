"""Who is measured, and who is left out and why."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import pytest

from shoal._bench import contender_selection
from shoal._bench.contender_selection import PEERS, select_contenders
from shoal._bench.duration import expected_seconds, fitting_rounds
from shoal._bench.probe import EnvProfile
from shoal._bench.runner import Settings
from shoal._bench.workload import Workload

PLAIN = EnvProfile(
    making=1e-3,
    reset=1e-4,
    step=1e-5,
    busy=1e-5,
    infos=0.0,
    observation_bytes=100,
    has_kernel=False,
    is_kernel=False,
    has_own_vector=False,
    is_atari=False,
    reward="float",
    reward_is_number=True,
    render_mode=None,
)
OWN = Workload("mine:Env", gymnasium.Env)
REGISTERED = Workload("CartPole-v1", gymnasium.Env, "CartPole-v1")


def test_every_backend_that_the_environment_can_have_is_measured() -> None:
    ways = [way.name for way in select_contenders(OWN, PLAIN, [], [8], workers=[1, 2]).ways]
    assert ways == [
        "shoal",
        "shoal-inline",
        "shoal-thread",
        "shoal-process-1",
        "shoal-process-2",
    ]
    native = replace(PLAIN, has_kernel=True)
    assert "shoal-kernel-0" in [way.name for way in select_contenders(OWN, native, [], [8]).ways]
    only = replace(native, is_kernel=True)
    assert [way.name for way in select_contenders(OWN, only, [], [8]).ways] == [
        "shoal",
        "shoal-kernel-0",
    ]


def test_no_worker_is_without_an_environment() -> None:
    field = select_contenders(OWN, PLAIN, [], [1, 3, 4], workers=[1, 2, 4])
    workers = {name[-1] for name in field.names(3) if name.startswith("shoal-process")}
    assert workers == {"1", "2"}
    assert "shoal-process-4" in field.names(4)
    assert "shoal-process-1" in field.names(1)


def test_where_steps_are_spent_waiting_each_environment_may_have_a_worker() -> None:
    waiting = replace(PLAIN, step=1e-3, busy=1e-5)
    names = [way.name for way in select_contenders(OWN, waiting, [], [8, 1000]).ways]
    assert {"shoal-thread-8", "shoal-process-8"} <= set(names)
    assert not any(name.endswith("1000") for name in names)
    asked = [way.name for way in select_contenders(OWN, waiting, [], [8], workers=[3]).ways]
    assert [name for name in asked if "process" in name] == ["shoal-process-3"]


def test_who_is_left_out_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contender_selection, "find_spec", lambda name: None)
    assert select_contenders(REGISTERED, PLAIN, PEERS, [1]).left_out == {
        "sb3": 'not installed: pip install "shoal[sb3]"',
        "envpool": "not installed: pip install envpool",
    }
    own = select_contenders(OWN, PLAIN, ["envpool"], [1]).left_out["envpool"]
    assert own == "steps environments of its own only, known by their ids"
    given = select_contenders(REGISTERED, PLAIN, ["envpool"], [1], has_arguments=True).left_out[
        "envpool"
    ]
    assert given == "steps environments of its own, whose arguments are others"


def test_only_the_libraries_that_are_asked_for_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contender_selection, "find_spec", lambda name: True)
    vector = replace(PLAIN, has_own_vector=True)
    names = [peer.name for peer in select_contenders(REGISTERED, vector, ["gymnasium"], [1]).peers]
    assert names == ["gymnasium-sync", "gymnasium-async", "gymnasium-own"]
    names = [
        peer.name for peer in select_contenders(REGISTERED, vector, ["sb3", "envpool"], [1]).peers
    ]
    assert names == ["sb3-dummy", "sb3-subproc", "envpool"]


def test_what_is_slow_is_measured_in_fewer_rounds_and_takes_longer() -> None:
    field, slow = (
        select_contenders(OWN, PLAIN, ["gymnasium"], [8, 64], workers=[1, 2]),
        replace(PLAIN, step=0.02),
    )
    settings = Settings(3, 0.1)
    quick = expected_seconds(field, PLAIN, [8, 64], settings)
    assert quick < expected_seconds(field, slow, [8, 64], settings)
    assert fitting_rounds(field, PLAIN, [8, 64], 0.1, 1000.0) == 9
    assert fitting_rounds(field, slow, [8, 64], 0.1, 30.0) == 3
    rounds = fitting_rounds(field, PLAIN, [8, 64], 0.1, 20.0)
    assert expected_seconds(field, PLAIN, [8, 64], Settings(rounds, 0.1)) <= 20.0


def test_what_hurts_is_warned_of() -> None:
    assert PLAIN.warnings() == []
    hurting = replace(
        PLAIN,
        infos=1e-4,
        observation_bytes=1_000_000,
        reward="ndarray",
        reward_is_number=False,
        render_mode="human",
    )
    assert [warning.split(" (")[0].split(" take")[0] for warning in hurting.warnings()] == [
        "It opens a window",
        "Its rewards are no numbers but ndarray, which vectors may refuse.",
        "Its infos",
        "Its observations are large",
    ]
