"""A training run is shown on a page, and gives the same result as without the page."""

import json
import threading

import pytest

pytest.importorskip("torch")

from shoal.live._training_page import TrainingPage
from shoal.train import train_single_run
from shoal.train._config import parse_config
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from tests.live.page_client import Stream, fetch, fetch_frames

CONFIG = {
    "task": {"id": "shoal/Hockey-v0"},
    "curriculum": {"phases": [{"name": "first", "steps": 900}, {"name": "second", "steps": 100}]},
    "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8], "batch_size": 8}},
    "training": {
        "warmup_steps": 50,
        "video_episodes": 0,
        "eval_num_games": 4,
        "max_episode_steps": 20,
    },
}


def train(folder, displays=()):
    return train_single_run(
        parse_config(CONFIG),
        folder,
        "run",
        verbose=False,
        device="cpu",
        num_envs=4,
        seed=1,
        displays=displays,
    )


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    from shoal.train._reporting import reporter

    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


def test_a_run_with_a_page_is_shown_and_gives_the_same_result(tmp_path, monkeypatch):
    page = TrainingPage(port=0, picture_share=0.5, refresh=0.3)
    records, progress = [], page.progress
    monkeypatch.setattr(page, "progress", lambda record: (records.append(record), progress(record)))
    stream = Stream(page.url)
    finished = threading.Event()

    def request_frames():
        while not finished.wait(0.05) and len(fetch_frames(page.url)) < 4:
            pass

    viewer = threading.Thread(target=request_frames)
    viewer.start()
    shown = train(tmp_path / "shown", [page])
    finished.set()
    viewer.join()
    last = stream.join()
    assert last["ended"] == "run finished"
    assert (last["kind"], last["title"]) == ("training", "run")
    assert last["training"]["phases"] == 2
    assert last["training"]["share"] == 1.0
    # A record has no losses if there was no update since the record before.
    assert any(record.losses for record in records)
    assert last["training"]["losses"] == records[-1].losses
    assert [each["opponent"] for each in last["training"]["evaluations"]] == ["weak", "strong"]
    assert 0 <= last["wins"]["rate"] <= 1
    assert last["steps"] == 1000
    assert last["pictures"]["version"] > 0
    kinds = [entry["kind"] for entry in stream.log()]
    assert {"start", "phase", "evaluation", "checkpoint", "end"} <= set(kinds)
    plain = train(tmp_path / "plain")
    for name in ("mean_reward", "total_steps", "total_gradient_steps", "evaluation_results"):
        assert shown[name] == plain[name]
    with pytest.raises(OSError, match="refused"):
        fetch(page.url)


def test_numbers_that_are_not_finite_are_sent_as_null(tmp_path):
    with TrainingPage(port=0) as page:
        nan = float("nan")
        page.progress(
            ProgressRecord(1, 1, 1, 1.0, "p", 0, 0.5, 0.5, 1.0, 1.0, None, None, {"loss": nan})
        )
        page.evaluation(EvaluationRecord(1, "", 2, None, None, None, None, nan, nan, 1.0, 2.0))
        page.ratings([RatingRecord(1, "weak", "scripted", 1.0, 2.0, 3.0, 4)])
        page.note("anything at all")
        state = page._watcher.state()
        json.dumps(state, allow_nan=False)
        assert state["training"]["losses"] == {"loss": None}
        assert state["training"]["evaluations"][0]["low"] is None
        assert state["training"]["ratings"][0]["player"] == "weak"
        assert state["wins"] is None
        assert [entry["kind"] for entry in state["log"]] == ["evaluation", "note"]
