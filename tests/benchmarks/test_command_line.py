"""The command line of the benchmarks: arguments, selection and exit statuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ROOT
from benchmarks.__main__ import main
from benchmarks.figures import groups
from shoal._bench import machine
from shoal._bench.runner import Settings

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def sigterm_handler() -> Iterator[None]:
    """Restore the handler of SIGTERM, which every command replaces."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line and return its exit status."""

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
        return main()

    return run


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls of ``measure_figures``; a group whose name begins with "k" is missed."""
    calls: list[tuple[Any, ...]] = []

    def note(*arguments: Any) -> bool:
        calls.append(arguments)
        return not arguments[0].name.startswith("k")

    monkeypatch.setattr("benchmarks.measure.measure_figures", note)
    return calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figures", "--cores", "1000000"], "expected a number from 1 to "),
        (["figures", "--rounds", "0"], "0 is out of range; expected a positive number"),
        (["figures", "--seconds", "-1"], "expected a positive number"),
        (["run", "--workloads", "noop,chess"], "unknown: chess; expected noop, "),
        (["run", "--num-envs", "8,0"], "0 is out of range; expected a positive number"),
        (["run", "--contenders", "shoal-fast"], "unknown: shoal-fast; expected shoal, "),
    ],
)
def test_invalid_arguments(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_figures_measures_the_selected_figures_of_each_group(
    run: Run, measured: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    names = ["costs", "backends/burn*"]
    assert run("figures", *names, "--rounds", "3", "--output", str(tmp_path)) == 0
    assert [(group.name, len(figures), *rest) for group, figures, *rest in measured] == [
        ("backends", 2, tmp_path, 3, None),
        ("costs", 4, tmp_path, 3, None),
    ]


def test_a_missed_requirement_is_exit_status_1(run: Run, measured: list[Any]) -> None:
    assert run("figures", "kernels/swing*", "costs") == 1
    assert len(measured) == 2


@pytest.mark.parametrize("command", ["figures", "list"])
def test_an_unknown_name_is_exit_status_2(
    run: Run, measured: list[Any], capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(command, "costs", "chess") == 2
    assert "no figure or group is called 'chess'" in capsys.readouterr().err
    assert not measured


def test_a_group_whose_module_is_missing_is_skipped(
    run: Run,
    measured: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("benchmarks.measure.find_spec", lambda name: name != "ray" or None)
    assert run("figures", "ray", "costs") == 2
    assert [group.name for group, *_ in measured] == ["costs"]
    assert "ray is skipped: the module ray is not installed" in capsys.readouterr().err


def test_cores_limits_this_process(
    run: Run, measured: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.sched_getaffinity(0)
    try:
        assert run("figures", "costs", "--cores", "1") == 0
        assert os.sched_getaffinity(0) == {min(before)}
        assert machine.core_count() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_list_prints_every_figure(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    names = [figure.name for group in groups() for figure in group.figures]
    assert [row.split()[0] for row in rows] == names
    assert run("list", "costs") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 4


def test_run_passes_its_arguments(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr("benchmarks.run.run", lambda *arguments: calls.append(arguments))
    chosen = ["--workloads", "dict", "--contenders", "loop", "--num-envs", "2,4"]
    assert run("run", *chosen, "--rounds", "2", "--output", str(tmp_path)) == 0
    assert calls == [(["dict"], ["loop"], [2, 4], Settings(rounds=2), tmp_path)]


def test_run_writes_a_table_and_a_plot(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    cells = ["--workloads", "noop", "--contenders", "shoal,loop", "--num-envs", "2"]
    rounds = ["--rounds", "2", "--seconds", "0.02", "--output", str(tmp_path / "results")]
    assert run("run", *cells, *rounds) == 0
    results = tmp_path / "results"
    assert {path.name for path in results.iterdir()} == {"latest.md", "latest.png"}
    written = (results / "latest.md").read_text()
    assert "2 interleaved rounds of 0.02 s." in written
    for text in (written, capsys.readouterr().out):
        assert "2 envs" in text
        assert "loop" in text


def test_ctrl_c_is_exit_status_130(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.demo.demo", interrupted)
    assert run("demo") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_listing_imports_no_measured_library() -> None:
    script = (
        "import sys; sys.argv[1:] = ['list']; from benchmarks.__main__ import main; main(); "
        "heavy = {'torch', 'matplotlib', 'ray', 'pettingzoo', 'grpc'} & set(sys.modules); "
        "print(heavy, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert ended.stderr == "set()\n"
