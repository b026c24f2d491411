"""What is advised follows from what was found, and from nothing else."""

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


def told(machine=MACHINE, software=SOFTWARE, required=(), extras=(), outcomes=()):
    """The level, the text and the advice of each finding."""
    found = findings(machine, software, required, extras, outcomes)
    return [(each.level, each.text, each.advice) for each in found]


def with_(machine=MACHINE, cores=(), memory=(), groups=(), **changes):
    return replace(
        machine,
        cores=replace(machine.cores, **dict(cores)),
        memory=replace(machine.memory, **dict(memory)),
        groups=replace(machine.groups, **dict(groups)),
        **changes,
    )


def test_where_all_is_well_nothing_is_said():
    works = [
        BackendCheck("inline", "works", 1.0),
        BackendCheck("remote", "skipped", None, "not here"),
    ]
    parts = [PackageStatus("numpy", ">=2", "2.1", "present")]
    extras = [RAY, Extra("atari", (), "missing", "pip install it")]
    assert told(required=parts, extras=extras, outcomes=works) == []


@pytest.mark.parametrize(
    ("machine", "level", "words"),
    [
        (
            with_(cores={"usable": 2}, groups={"cpus": 1.5}),
            "warning",
            ["allows 1.5 CPUs", "16 are visible", "Shoal uses 2 cores", "OMP_NUM_THREADS=2"],
        ),
        (with_(cores={"allowed": 4, "usable": 4}), "note", ["4 of 16 cores"]),
        (with_(cores={"allowed": 16, "usable": 1}), "note", ["one core"]),
        (with_(cores={"load": 40.2}), "note", ["40 programs", "16 cores"]),
        (with_(open_files=Limit(32, 4096)), "warning", ["open 32 files", "ulimit -n 80"]),
        (with_(open_files=Limit(32, 32)), "warning", ["open 32 files", "give workers="]),
        (with_(processes=Limit(50, 50)), "warning", ["this user may have 50", "ulimit -u"]),
        (with_(groups={"processes": 20}), "warning", ["control group may have 20", "pids.max"]),
        (with_(groups={"memory": GIB // 4}), "warning", ["256 MiB", "about 480", "start='fork'"]),
        (with_(memory={"available": GIB // 8}), "warning", ["128 MiB"]),
    ],
)
def test_what_limits_a_machine_is_told_with_numbers_and_a_remedy(machine, level, words):
    ((got, text, advice),) = told(machine)
    assert got == level
    for word in words:
        assert word in f"{text} {advice}"


def test_a_small_dev_shm_matters_to_ray_alone():
    machine = with_(memory={"shm_total": 64 << 20})
    assert told(machine) == []
    assert told(machine, extras=[replace(RAY, state="missing")]) == []
    ((level, text, advice),) = told(machine, extras=[RAY])
    assert level == "warning"
    assert "64 MiB" in text
    assert "--shm-size" in advice


def test_what_shoal_needs_is_a_problem_and_what_it_can_do_without_is_not():
    numpy = PackageStatus("numpy", ">=2.0", "1.26", "unsuitable")
    gone = PackageStatus("cloudpickle", ">=3.0", None, "missing")
    old = Extra(
        "atari", (PackageStatus("ale-py", ">=0.12", "0.9", "unsuitable"),), "unsuitable", "this"
    )
    fails = BackendCheck("process", "fails", None, "it hangs")
    found = told(required=[numpy, gone], extras=[old], outcomes=[fails])
    assert [level for level, _, _ in found] == ["problem"] * 3 + ["warning"]
    (_, first, first_advice), (_, second, _), (_, third, third_advice), (_, last, last_advice) = (
        found
    )
    assert "numpy>=2.0, but 1.26" in first
    assert first_advice == 'pip install "numpy>=2.0"'
    assert "cloudpickle>=3.0, but it is missing" in second
    assert "process does not work: it hangs" in third
    assert "backend='thread'" in third_advice
    assert "ale-py 0.9 (not >=0.12)" in last
    assert last_advice == "this"


def test_a_system_without_futexes_or_a_compiler():
    software = replace(SOFTWARE, doorbell="pipe", compiler=Compiler("cc", None))
    found = told(software=software)
    assert [level for level, _, _ in found] == ["note", "note"]
    assert "no futexes" in found[0][1]
    assert "no C compiler (cc)" in found[1][1]
    assert "shoal[numba]" in found[1][2]
