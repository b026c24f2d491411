"""A run of training is shown with its environments, and trains as it would without."""

import json
import threading

import pytest

pytest.importorskip("torch")

from shoal.live._training_page import TrainingPage
from shoal.train import train_single_run
from shoal.train._config import parse_config
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from tests.live.page_client import Stream, fetched, pictures

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


def trained(folder, displays=()):
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


def test_a_run_is_shown_as_it_goes_on_and_is_the_same(tmp_path):
    page = TrainingPage(port=0, picture_share=0.5, refresh=0.3)
    stream = Stream(page.url)
    looking = threading.Event()

    def look():
        while not looking.wait(0.05) and len(pictures(page.url)) < 4:
            pass

    watching = threading.Thread(target=look)
    watching.start()
    shown = trained(tmp_path / "shown", [page])
    looking.set()
    watching.join()
    last = stream.end()
    assert last["ended"] == "the run is over"
    assert (last["kind"], last["title"]) == ("training", "run")
    assert last["training"]["phases"] == 2
    assert last["training"]["share"] == 1.0
    assert last["training"]["losses"]
    assert [one["opponent"] for one in last["training"]["evaluations"]] == ["weak", "strong"]
    assert 0 <= last["wins"]["rate"] <= 1
    assert last["steps"] == 1000
    assert last["pictures"]["version"] > 0
    kinds = [entry["kind"] for entry in stream.log()]
    assert {"start", "phase", "evaluation", "checkpoint", "end"} <= set(kinds)
    plain = trained(tmp_path / "plain")
    for name in ("mean_reward", "total_steps", "total_gradient_steps", "evaluation_results"):
        assert shown[name] == plain[name]
    with pytest.raises(OSError, match="refused"):
        fetched(page.url)


def test_numbers_that_are_not_finite_are_none(tmp_path):
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
