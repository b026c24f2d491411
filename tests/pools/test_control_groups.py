"""Limits are read from control group trees of containers, batch systems and plain hosts."""

import pytest

from shoal.pools._cgroups import GroupLimits, read_cpu_limit, read_limits

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


def v1(controllers, inside="/"):
    mount = f"/sys/fs/cgroup/{controllers}"
    return f"33 31 0:30 {inside} {mount} rw - cgroup cgroup rw,{controllers}"


@pytest.fixture
def tree(tmp_path):
    """Writes a file system: mounts, the groups of the process, and files with limits."""

    def write(mounts, groups, **files):
        process = {"proc/self/mountinfo": "\n".join(mounts), "proc/self/cgroup": "\n".join(groups)}
        limits = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
        for name, text in {**process, **limits}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text + "\n")
        return tmp_path

    return write


def test_the_outermost_group_of_a_version_2_container_is_its_own(tree):
    files = {"cpu.max": "150000 100000", "memory.max": "4294967296", "pids.max": "512"}
    assert read_limits(tree([V2], ["0::/"], **files)) == GroupLimits(1.5, 4 << 30, 512)


def test_max_means_no_limit_in_version_2(tree):
    files = {"cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}
    assert read_limits(tree([V2], ["0::/"], **files)) == GroupLimits(None, None, None)


def test_a_systemd_unit_is_also_limited_by_its_parent_groups(tree):
    files = {
        "user.slice/cpu.max": "400000 100000",
        "user.slice/job.service/cpu.max": "800000 100000",
        "user.slice/job.service/memory.max": "max",
        "user.slice/memory.max": "1000",
        "other.slice/cpu.max": "100000 100000",
    }
    root = tree([V2], ["0::/user.slice/job.service"], **files)
    assert read_limits(root) == GroupLimits(4.0, 1000, None)


def test_a_version_1_container_names_a_path_of_the_host(tree):
    inside = "/docker/3f2a"
    mounts = [
        v1("cpu,cpuacct", inside),
        v1("memory", inside),
        v1("pids", inside),
    ]
    groups = [f"4:cpu,cpuacct:{inside}", f"3:memory:{inside}", f"2:pids:{inside}"]
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "200000",
        "cpu,cpuacct/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "2147483648",
        "pids/pids.max": "100",
    }
    assert read_limits(tree(mounts, groups, **files)) == GroupLimits(2.0, 2 << 30, 100)


def test_special_numbers_mean_no_limit_in_version_1(tree):
    files = {
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "9223372036854771712",
    }
    root = tree([v1("cpu"), v1("memory")], ["1:cpu:/", "2:memory:/"], **files)
    assert read_limits(root) == GroupLimits(None, None, None)


def test_a_job_of_version_1_beside_an_empty_version_2(tree):
    mounts = [v1("cpu"), V2.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified ")]
    files = {
        "cpu/slurm/job_7/cpu.cfs_quota_us": "300000",
        "cpu/slurm/job_7/cpu.cfs_period_us": "100000",
        "cpu/slurm/cpu.cfs_quota_us": "-1",
        "cpu/slurm/cpu.cfs_period_us": "100000",
    }
    assert read_cpu_limit(tree(mounts, ["1:cpu:/slurm/job_7", "0::/"], **files)) == 3.0


@pytest.mark.parametrize("group", ["/../../outside", "/elsewhere"])
def test_an_invisible_group_falls_back_to_the_mounted_group(tree, group):
    mounts = [V2.replace(" / ", " /inner ")]
    assert read_cpu_limit(tree(mounts, [f"0::{group}"], **{"cpu.max": "50000 100000"})) == 0.5


def test_unreadable_files_mean_no_limit(tmp_path, tree):
    assert read_limits(tmp_path / "nowhere") == GroupLimits(None, None, None)
    assert read_cpu_limit(tree([V2], ["0::/"], **{"cpu.max": "nonsense"})) is None
