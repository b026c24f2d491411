"""TensorBoard shows what was told, and nothing is told twice by a run that goes on."""

import sys
import time

import pytest

from shoal.errors import MissingExtraError
from shoal.train._reporting.tensorboard import TensorBoardLog, open_board
from tests.train.reporting.records import alone, evaluation, progress, rating

accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def scalars(folder):
    """What is shown: steps and values by name."""
    board = accumulators.EventAccumulator(str(folder / "tensorboard"))
    board.Reload()
    return {
        name: [(event.step, event.value) for event in board.Scalars(name)]
        for name in board.Tags()["scalars"]
    }


def test_scalars(tmp_path):
    board = open_board(tmp_path)
    board.progress(progress(1000))
    board.progress(progress(2000, mean_reward=None, win_rate=None, losses={}))
    board.evaluation(evaluation(1500))
    board.evaluation(alone(1500))
    board.ratings([rating(), rating(player="weak")])
    board.close()
    board.close()
    shown = scalars(tmp_path)
    assert shown["speed/steps_per_second"] == [(1000, 100.0), (2000, 100.0)]
    assert shown["returns/mean"] == [(1000, 1.0)]
    assert shown["returns/win_rate"] == [(1000, 0.5)]
    assert shown["losses/actor"] == [(1000, -1.5)]
    assert shown["evaluation/weak/win_rate"] == [(1500, pytest.approx(0.6))]
    assert shown["evaluation/mean_reward"] == [(1500, 0.5)]
    assert "evaluation/win_rate" not in shown
    assert shown["league/weak/rating"] == [(1000, 18.5)]


def test_a_run_that_goes_on_replaces_what_it_had_told_later(tmp_path):
    board = open_board(tmp_path)
    for step in (1000, 2000, 3000):
        board.progress(progress(step))
    board.close()
    time.sleep(1.1)  # files are read in the order of the second that is in their names
    board = open_board(tmp_path, purge_step=2001)
    board.progress(progress(2500))
    board.close()
    assert [step for step, _ in scalars(tmp_path)["run/episodes"]] == [1000, 2000, 2500]


def test_without_tensorboard_there_is_no_board(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="TensorBoard is not installed: pip install"):
        TensorBoardLog(tmp_path)
    with pytest.warns(UserWarning, match="this run has no board") as warned:
        assert open_board(tmp_path) is None
    assert len(warned) == 1
    assert not list(tmp_path.iterdir())
