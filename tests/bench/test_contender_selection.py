"""The selection of contenders, and the reasons for which libraries are skipped."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import pytest

from shoal._bench import contender_selection
from shoal._bench.contender_selection import PEERS, ContenderSelection, select_contenders
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


def configurations(selection: ContenderSelection) -> list[str]:
    return [each.name for each in selection.configurations]


def test_every_backend_that_supports_the_environment_is_selected() -> None:
    names = configurations(select_contenders(OWN, PLAIN, [], [8], workers=[1, 2]))
    assert names == [
        "shoal",
        "shoal-inline",
        "shoal-thread",
        "shoal-process-1",
        "shoal-process-2",
    ]
    native = replace(PLAIN, has_kernel=True)
    assert "shoal-kernel-0" in configurations(select_contenders(OWN, native, [], [8]))
    only = replace(native, is_kernel=True)
    assert configurations(select_contenders(OWN, only, [], [8])) == [
        "shoal",
        "shoal-kernel-0",
    ]


def test_there_are_never_more_workers_than_environments() -> None:
    selection = select_contenders(OWN, PLAIN, [], [1, 3, 4], workers=[1, 2, 4])
    workers = {name[-1] for name in selection.names(3) if name.startswith("shoal-process")}
    assert workers == {"1", "2"}
    assert "shoal-process-4" in selection.names(4)
    assert "shoal-process-1" in selection.names(1)


def test_environments_that_wait_are_measured_with_a_worker_for_each() -> None:
    waiting = replace(PLAIN, step=1e-3, busy=1e-5)
    names = configurations(select_contenders(OWN, waiting, [], [8, 1000]))
    assert {"shoal-thread-8", "shoal-process-8"} <= set(names)
    assert not any(name.endswith("1000") for name in names)
    names = configurations(select_contenders(OWN, waiting, [], [8], workers=[3]))
    assert [name for name in names if "process" in name] == ["shoal-process-3"]


def test_skipped_libraries_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contender_selection, "find_spec", lambda name: None)
    assert select_contenders(REGISTERED, PLAIN, PEERS, [1]).skipped == {
        "sb3": 'not installed: pip install "shoal[sb3]"',
        "envpool": "not installed: pip install envpool",
    }
    own = select_contenders(OWN, PLAIN, ["envpool"], [1])
    assert own.skipped["envpool"] == "supports only its built-in environments, by id"
    with_arguments = select_contenders(REGISTERED, PLAIN, ["envpool"], [1], has_arguments=True)
    reason = "its built-in environments take different arguments"
    assert with_arguments.skipped["envpool"] == reason


def test_only_the_requested_libraries_are_selected(
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


def test_slow_environments_get_fewer_rounds_and_take_longer() -> None:
    selection, slow = (
        select_contenders(OWN, PLAIN, ["gymnasium"], [8, 64], workers=[1, 2]),
        replace(PLAIN, step=0.02),
    )
    settings = Settings(3, 0.1)
    quick = expected_seconds(selection, PLAIN, [8, 64], settings)
    assert quick < expected_seconds(selection, slow, [8, 64], settings)
    assert fitting_rounds(selection, PLAIN, [8, 64], 0.1, 1000.0) == 9
    assert fitting_rounds(selection, slow, [8, 64], 0.1, 30.0) == 3
    rounds = fitting_rounds(selection, PLAIN, [8, 64], 0.1, 20.0)
    assert expected_seconds(selection, PLAIN, [8, 64], Settings(rounds, 0.1)) <= 20.0


def test_warnings_about_properties_of_the_environment() -> None:
    assert PLAIN.warnings() == []
    costly = replace(
        PLAIN,
        infos=1e-4,
        observation_bytes=1_000_000,
        reward="ndarray",
        reward_is_number=False,
        render_mode="human",
    )
    assert [warning.split(" (")[0].split(" takes")[0] for warning in costly.warnings()] == [
        "The environment opens a window",
        "The rewards are of type ndarray, not numbers: some vectors reject them.",
        "Sending the infos between processes",
        "The observations are large",
    ]
