"""Plots: which ones are drawn, and robustness to unusual records."""

import sys

import matplotlib
import matplotlib.image
import pytest

from shoal.errors import MissingExtraError
from shoal.train._reporting import charts
from shoal.train._reporting.log_reader import RunRecords
from shoal.train._reporting.plots import PlotError, write_plots
from shoal.train._reporting.style import STYLE
from tests.train.reporting.records import (
    episode,
    evaluation,
    evaluation_without_opponent,
    progress,
    rating,
    run,
)

ALL = ["learning_curve", "losses", "ratings", "throughput", "win_rates"]


@pytest.fixture(autouse=True)
def low_resolution(monkeypatch):
    """Draw small images, which is faster."""
    monkeypatch.setitem(STYLE, "savefig.dpi", 40)


def drawn(folder, records):
    """Draw the plots, check that none is empty, and return their names."""
    paths = write_plots(folder / "plots", records)
    assert sorted(paths) == sorted((folder / "plots").iterdir())
    for path in paths:
        image = matplotlib.image.imread(path)
        assert image.shape[0] > 100
        assert image.shape[1] > 300
        assert image[..., :3].std() > 0.01
    return sorted(path.stem for path in paths)


def test_a_complete_run_has_all_plots(tmp_path):
    assert drawn(tmp_path, run()) == ALL


def test_without_records_no_plot_is_drawn(tmp_path):
    assert drawn(tmp_path, RunRecords([], [], [], [])) == []


def test_one_record_of_each_kind(tmp_path):
    records = RunRecords(
        [episode()], [progress()], [evaluation(), evaluation_without_opponent()], [rating()]
    )
    assert drawn(tmp_path, records) == ["evaluations", *ALL]


def test_without_episodes_the_learning_curve_uses_progress_records(tmp_path):
    records = [progress(step, win_rate=None, losses={}) for step in range(0, 4001, 50)]
    assert drawn(tmp_path, RunRecords([], records, [], [])) == ["learning_curve", "throughput"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e308])
def test_values_that_cannot_be_drawn_are_omitted(tmp_path, value):
    odd = RunRecords(
        [episode(n, reward=value) for n in range(9)],
        [
            progress(
                step, mean_reward=value, win_rate=value, losses={"critic": value},
                steps_per_second=value, updates_per_second=value,
            )
            for step in (1000, 2000)
        ],
        [evaluation(step, win_rate=value, low=value, high=value) for step in (1000, 2000)]
        + [evaluation_without_opponent(1000, mean_reward=value, low=value, high=value)],
        [rating(step, rating=value) for step in (1000, 2000)],
    )  # fmt: skip
    assert drawn(tmp_path, odd) == []
    good = run(5)
    mixed = RunRecords(*(some + more for some, more in zip(odd, good, strict=True)))
    mixed.evaluations.append(evaluation(4000, low=value))
    assert drawn(tmp_path, mixed) == ALL


def test_unusual_names_can_be_drawn(tmp_path):
    names = ["$x^", "_hidden", "\\frac{", "a" * 300, "<b>", "", " ", "%d", "two\nlines", "\ud800"]
    crowd = [*names, *(f"player-{number}" for number in range(8))]
    phases = [
        progress(10 * number, phase=name, phase_number=number, losses={name: 10.0**number})
        for number, name in enumerate(crowd)
    ]
    records = RunRecords(
        [episode(1), episode(1), episode(1)],
        phases,
        [evaluation(step, name) for name in crowd for step in (0, 100)],
        [rating(0, name, role=name) for name in crowd],
    )
    assert drawn(tmp_path, records) == ALL


def test_a_loss_that_starts_late_is_drawn_on_the_full_axis():
    records = [
        progress(step, phase_number=step // 50, losses={"critic": 1.0} if step < 40 else {"q": 2.0})
        for step in range(0, 101, 10)
    ]
    figure = charts.losses(RunRecords([], records, [], []))
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert low <= 0
        assert high >= 100


def test_plots_neither_use_nor_change_the_users_matplotlib_settings(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with matplotlib.rc_context({"text.usetex": True, "axes.facecolor": "black"}):
        # Reading the backend would select one.
        names = set(matplotlib.rcParams) - {"backend"}
        before = {name: matplotlib.rcParams[name] for name in names}
        assert drawn(tmp_path, RunRecords([episode()], [], [], [])) == ["learning_curve"]
        assert {name: matplotlib.rcParams[name] for name in names} == before
    image = matplotlib.image.imread(tmp_path / "plots" / "learning_curve.png")
    assert image.mean() > 0.8


def test_a_plot_that_fails_does_not_prevent_the_others(tmp_path, monkeypatch):
    def fail(records):
        raise ValueError("too many dots")

    monkeypatch.setattr(charts, "learning_curve", fail)
    (tmp_path / "plots" / "losses.png").mkdir(parents=True)
    with pytest.raises(PlotError, match=r"learning_curve: too many dots; losses: .*Is a directory"):
        write_plots(tmp_path / "plots", run(5))
    written = {path.stem for path in (tmp_path / "plots").iterdir() if path.is_file()}
    assert written == {"ratings", "throughput", "win_rates"}


def test_without_matplotlib_an_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"plots require matplotlib.*shoal\[train\]"):
        write_plots(tmp_path, run(5))
