"""Facts about machines, read from a fake file system, and about this machine."""

import os

import pytest

from shoal.doctor._machine import read_machine
from shoal.doctor._software import _compiler, read_software
from shoal.pools._shares import available_cores


@pytest.fixture
def tree(tmp_path):
    """Writes files to a fake file system and returns its root."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def test_threads_of_one_physical_core_are_counted_once(tree):
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    files = {topology.format(core): f"{core % 4},{core % 4 + 4}\n" for core in range(8)}
    governor = {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"}
    models = {"proc/cpuinfo": "processor : 0\nmodel name : Abacus 9000\nmodel name : Other\n"}
    cores = read_machine(tree(**files, **governor, **models)).cores
    assert (cores.physical, cores.governor, cores.model) == (4, "powersave", "Abacus 9000")


def test_memory(tree):
    meminfo = "MemTotal:       16000 kB\nMemFree:   1 kB\nMemAvailable:   9000 kB\nHugePages: 0\n"
    memory = read_machine(tree(**{"proc/meminfo": meminfo, "dev/shm/x": ""})).memory
    assert (memory.total, memory.available) == (16000 * 1024, 9000 * 1024)
    assert 0 < memory.shm_free <= memory.shm_total


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({".dockerenv": ""}, "Docker"),
        ({"run/.containerenv": ""}, "Podman"),
        ({"proc/1/cgroup": "0::/kubepods/burstable/pod1"}, "Kubernetes"),
        ({"proc/version": "Linux version 5.15 Microsoft-standard-WSL2"}, "WSL"),
        ({"proc/1/cgroup": "0::/init.scope"}, None),
        ({}, None),
    ],
)
def test_containers_and_virtual_machines_are_recognized(tree, files, name):
    assert read_machine(tree(**files)).surroundings == name


def test_limits_of_control_groups_are_read(tree):
    mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    files = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/"}
    root = tree(**files, **{"sys/fs/cgroup/cpu.max": "150000 100000"})
    assert read_machine(root).groups.cpus == 1.5


def test_missing_files_give_none(tmp_path):
    machine = read_machine(tmp_path)
    assert (machine.cores.physical, machine.cores.model, machine.cores.governor) == (None,) * 3
    assert (machine.memory.available, machine.memory.shm_total) == (None, None)


def test_core_counts_of_this_machine_are_consistent():
    cores = read_machine().cores
    assert cores.usable == available_cores() <= cores.allowed == len(os.sched_getaffinity(0))
    assert cores.allowed <= cores.logical


def test_the_compiler_is_that_of_the_cc_variable(monkeypatch, tmp_path):
    compiler = tmp_path / "mine"
    compiler.write_text("#!/bin/sh\necho Mine 3.0\necho Copyright\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"{compiler} -pipe")
    assert read_software().compiler.version == "Mine 3.0"
    assert _compiler("no-such-compiler").version is None
    compiler.write_text("#!/bin/sh\nexit 1\n")
    assert read_software().compiler.version is None
