"""The benchmark of kernels measures what is required of them."""

from benchmarks.contenders import CONTENDERS
from benchmarks.kernels import REQUIRED, measure_kernels
from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.runner import Settings


def test_required_figures_are_about_what_there_is():
    contests = [figure.contest for figure in REQUIRED]
    for workload, _, names in contests:
        for name in names:
            assert CONTENDERS[name].supports(workload)
    assert {workload for workload, *_ in contests} == {*GYMNASIUM_IDS, "swing"}


def test_results_are_written(tmp_path, monkeypatch, capsys):
    few = [figure for figure in REQUIRED if "swing" in figure.what or "acrobot" in figure.what]
    monkeypatch.setattr("benchmarks.kernels.REQUIRED", tuple(few))
    monkeypatch.setattr("benchmarks.kernels.worth_of_threads", lambda *_: [])
    measure_kernels(Settings(rounds=2, seconds=0.01), tmp_path)
    assert "swing 4096: shoal-kernel-numba times shoal-kernel-c" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"kernels.json", "kernels.md"}
