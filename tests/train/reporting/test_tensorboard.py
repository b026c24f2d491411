"""TensorBoard logs: scalars, and the purge of old ones in a resumed run."""

import sys
import time

import pytest

from shoal.errors import MissingExtraError
from shoal.train._reporting.tensorboard import TensorBoardLog, open_board
from tests.train.reporting.records import evaluation, evaluation_without_opponent, progress, rating

accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def scalars(folder):
    """Return the steps and values that TensorBoard shows, by name."""
    accumulator = accumulators.EventAccumulator(str(folder / "tensorboard"))
    accumulator.Reload()
    return {
        name: [(event.step, event.value) for event in accumulator.Scalars(name)]
        for name in accumulator.Tags()["scalars"]
    }


def test_records_are_written_as_scalars(tmp_path):
    log = open_board(tmp_path)
    log.progress(progress(1000))
    log.progress(progress(2000, mean_reward=None, win_rate=None, losses={}))
    log.evaluation(evaluation(1500))
    log.evaluation(evaluation_without_opponent(1500))
    log.ratings([rating(), rating(player="weak")])
    log.close()
    log.close()
    shown = scalars(tmp_path)
    assert shown["speed/steps_per_second"] == [(1000, 100.0), (2000, 100.0)]
    assert shown["returns/mean"] == [(1000, 1.0)]
    assert shown["returns/win_rate"] == [(1000, 0.5)]
    assert shown["losses/actor"] == [(1000, -1.5)]
    assert shown["evaluation/weak/win_rate"] == [(1500, pytest.approx(0.6))]
    assert shown["evaluation/mean_reward"] == [(1500, 0.5)]
    assert "evaluation/win_rate" not in shown
    assert shown["league/weak/rating"] == [(1000, 18.5)]


def test_a_resumed_run_hides_scalars_written_after_its_checkpoint(tmp_path):
    log = open_board(tmp_path)
    for step in (1000, 2000, 3000):
        log.progress(progress(step))
    log.close()
    time.sleep(1.1)  # the order of files is that of the timestamps in their names, in seconds
    log = open_board(tmp_path, purge_step=2001)
    log.progress(progress(2500))
    log.close()
    assert [step for step, _ in scalars(tmp_path)["run/episodes"]] == [1000, 2000, 2500]


def test_without_tensorboard_open_board_warns_and_returns_none(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="TensorBoard is not installed: pip install"):
        TensorBoardLog(tmp_path)
    with pytest.warns(UserWarning, match="no TensorBoard logs are written") as warned:
        assert open_board(tmp_path) is None
    assert len(warned) == 1
    assert not list(tmp_path.iterdir())
