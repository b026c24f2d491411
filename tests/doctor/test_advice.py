"""Findings follow from facts about the machine and the installation."""

from dataclasses import replace

import pytest

from shoal.doctor._advice import findings
from shoal.doctor._backend_checks import BackendCheck
from shoal.doctor._extras import Extra, PackageStatus
from shoal.doctor._machine import Cores, Limit, Machine, Memory
from shoal.doctor._software import Compiler, Software
from shoal.pools._cgroups import GroupLimits

GIB = 1 << 30
CORES = Cores(16, 8, 16, 16, "Abacus", None, 0.5)
MEMORY = Memory(64 * GIB, 32 * GIB, 32 * GIB, 32 * GIB)
NO_LIMIT = Limit(None, None)
MACHINE = Machine("Linux", None, CORES, MEMORY, GroupLimits(None, None, None), NO_LIMIT, NO_LIMIT)
SOFTWARE = Software("1", "CPython", "python", ("fresh",), "futex", Compiler("cc", "cc 12"))
RAY = Extra("ray", (), "present", "pip install it")


def findings_for(machine=MACHINE, software=SOFTWARE, required=(), extras=(), outcomes=()):
    """Return the level, the text and the advice of each finding."""
    result = findings(machine, software, required, extras, outcomes)
    return [(finding.level, finding.text, finding.advice) for finding in result]


def machine_with(machine=MACHINE, cores=(), memory=(), groups=(), **changes):
    return replace(
        machine,
        cores=replace(machine.cores, **dict(cores)),
        memory=replace(machine.memory, **dict(memory)),
        groups=replace(machine.groups, **dict(groups)),
        **changes,
    )


def test_without_limits_and_problems_there_are_no_findings():
    outcomes = [
        BackendCheck("inline", "works", 1.0),
        BackendCheck("remote", "skipped", None, "requires an extra"),
    ]
    parts = [PackageStatus("numpy", ">=2", "2.1", "present")]
    extras = [RAY, Extra("atari", (), "missing", "pip install it")]
    assert findings_for(required=parts, extras=extras, outcomes=outcomes) == []


@pytest.mark.parametrize(
    ("machine", "level", "words"),
    [
        (
            machine_with(cores={"usable": 2}, groups={"cpus": 1.5}),
            "warning",
            ["1.5 CPUs", "16 are visible", "Shoal uses 2 cores", "OMP_NUM_THREADS=2"],
        ),
        (machine_with(cores={"allowed": 4, "usable": 4}), "note", ["4 of 16 cores"]),
        (machine_with(cores={"allowed": 16, "usable": 1}), "note", ["only one core"]),
        (machine_with(cores={"load": 40.2}), "note", ["load average is 40", "16 cores"]),
        (
            machine_with(open_files=Limit(32, 4096)),
            "warning",
            ["at most 32 files", "ulimit -n 80"],
        ),
        (
            machine_with(open_files=Limit(32, 32)),
            "warning",
            ["at most 32 files", "a lower workers="],
        ),
        (
            machine_with(processes=Limit(50, 50)),
            "warning",
            ["this user may have at most 50", "ulimit -u"],
        ),
        (
            machine_with(groups={"processes": 20}),
            "warning",
            ["control group may have at most 20", "pids.max"],
        ),
        (
            machine_with(groups={"memory": GIB // 4}),
            "warning",
            ["256 MiB", "about 480 MiB", "start='fork'"],
        ),
        (machine_with(memory={"available": GIB // 8}), "warning", ["128 MiB"]),
    ],
)
def test_limits_of_the_machine_are_reported_with_numbers_and_a_remedy(machine, level, words):
    ((actual, text, advice),) = findings_for(machine)
    assert actual == level
    for word in words:
        assert word in f"{text} {advice}"


def test_a_small_dev_shm_is_a_warning_only_if_ray_is_installed():
    machine = machine_with(memory={"shm_total": 64 << 20})
    assert findings_for(machine) == []
    assert findings_for(machine, extras=[replace(RAY, state="missing")]) == []
    ((level, text, advice),) = findings_for(machine, extras=[RAY])
    assert level == "warning"
    assert "64 MiB" in text
    assert "--shm-size" in advice


def test_broken_requirements_are_problems_and_broken_extras_are_warnings():
    numpy = PackageStatus("numpy", ">=2.0", "1.26", "unsuitable")
    absent = PackageStatus("cloudpickle", ">=3.0", None, "missing")
    old = Extra(
        "atari", (PackageStatus("ale-py", ">=0.12", "0.9", "unsuitable"),), "unsuitable", "this"
    )
    fails = BackendCheck("process", "fails", None, "hangs: no response")
    result = findings_for(required=[numpy, absent], extras=[old], outcomes=[fails])
    assert [level for level, _, _ in result] == ["problem"] * 3 + ["warning"]
    (_, first, first_advice), (_, second, _), (_, third, third_advice), (_, last, last_advice) = (
        result
    )
    assert "numpy>=2.0, but 1.26" in first
    assert first_advice == 'pip install "numpy>=2.0"'
    assert "cloudpickle>=3.0, but it is not installed" in second
    assert "process does not work: hangs: no response" in third
    assert "backend='thread'" in third_advice
    assert "ale-py 0.9 is installed, but >=0.12 is required" in last
    assert last_advice == "this"


def test_missing_futexes_and_a_missing_compiler_are_notes():
    software = replace(SOFTWARE, doorbell="pipe", compiler=Compiler("cc", None))
    result = findings_for(software=software)
    assert [level for level, _, _ in result] == ["note", "note"]
    assert "no futexes" in result[0][1]
    assert "no C compiler found (cc)" in result[1][1]
    assert "shoal[numba]" in result[1][2]
