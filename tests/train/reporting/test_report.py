"""The report: its content, and the escaping of all text."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from shoal.train._reporting.logs import RunLogs
from shoal.train._reporting.report import write_report
from tests.train.reporting.records import (
    evaluation,
    evaluation_without_opponent,
    progress,
    rating,
    run,
)

EVIL = "</pre><script>alert('1')</script>&<img src=x onerror=\"alert(2)\">"


class Page(HTMLParser):
    """The tags, links and texts of an HTML page."""

    VOID = ("meta", "img", "br")

    def __init__(self, path):
        super().__init__()
        self.tags = Counter()
        self.sources, self.links, self.texts, self.open = [], [], [], []
        self.feed(path.read_text("utf-8"))
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        values = dict(attributes)
        assert not any(name.startswith("on") for name in values)
        if "src" in values:
            self.sources.append(values["src"])
        if "href" in values:
            self.links.append(values["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1] != "style":
            self.texts.append(data.strip())


def write_logs(folder, records):
    logs = RunLogs(folder)
    logs.episodes.append(records.episodes)
    logs.progress.append(records.progress)
    logs.evaluations.append(records.evaluations)
    logs.ratings.append(records.ratings)
    logs.close()


def text_from(page, first):
    """Return the text of the page from this one on."""
    return " ".join(page.texts[page.texts.index(first) :])


def test_the_report_of_a_complete_run(tmp_path):
    write_logs(tmp_path, run())
    (tmp_path / "plots").mkdir()
    for name in ("losses", "learning_curve", "mine"):
        (tmp_path / "plots" / f"{name}.png").write_bytes(name.encode())
    (tmp_path / "video.mp4").write_bytes(b"")
    summary = {
        "best_return": 12.3456, "steps": np.int64(4000), "train_seconds": 4000.0, "done": True,
        "win_rate": 0.75, "nothing": None, "folder": Path("here"), "list": [1, "two"],
        "opponents": {"weak": 0.9, "strong": 0.25},
    }  # fmt: skip
    path = write_report(tmp_path, summary, {"agent": {"rate": 3e-4, "sizes": (256, 256)}})
    assert path == tmp_path / "report.html"
    page = Page(path)
    assert page.sources == [
        "video.mp4",
        "data:image/png;base64,bGVhcm5pbmdfY3VydmU=",
        "data:image/png;base64,bG9zc2Vz",
    ]
    assert page.links == ["video.mp4"]
    page_text = " ".join(page.texts)
    assert page_text.startswith(f"{tmp_path.name} {tmp_path.name} 4,000 steps in 40 s, written 20")
    for text in (
        "best return 12.35 steps 4,000 train seconds 1 h 06 min done yes win rate 75.0% nothing -",
        'list [1, "two"] opponents weak 0.9 strong 0.25',
        "weak 3,000 10 6 1 3 60.0% 31.0% to 83.0% 2.5 77",
        "1. basics 0 2,000 25 1,000 20 s 2 50.0% 2. self-play 2,000 4,000 25 1,000 20 s 4 50.0%",
        "environment steps 4,000 100 100 100 updates 2,000 50 50 50",
        "main main 18.5 25.0 2.2 12 snapshot-1 main",
    ):
        assert text in page_text
    config = re.search(r"<pre>(.*)</pre>", path.read_text("utf-8"), re.DOTALL)[1]
    assert json.loads(config.replace("&quot;", '"')) == {
        "agent": {"rate": 3e-4, "sizes": [256, 256]}
    }


def test_all_text_is_escaped(tmp_path):
    ordinary = tmp_path / "ordinary"
    write_logs(ordinary, run())
    tags = Page(write_report(ordinary, {"a": "b", "c": {"d": "e"}}, {"f": "g"})).tags
    evil = tmp_path / "evil"
    records = run()
    write_logs(
        evil,
        records._replace(
            progress=[row._replace(phase=EVIL + row.phase) for row in records.progress],
            evaluations=[row._replace(opponent=EVIL + row.opponent) for row in records.evaluations],
            ratings=[row._replace(player=EVIL + row.player, role=EVIL) for row in records.ratings],
        ),
    )
    path = write_report(evil, {EVIL: EVIL, EVIL * 2: {EVIL: EVIL}}, {EVIL: [EVIL]}, title=EVIL)
    assert Page(path).tags == tags
    assert Page(path).texts.count(EVIL) >= 6


def test_the_report_of_a_run_without_records(tmp_path):
    page = Page(write_report(tmp_path, {}, {}, title="a run"))
    assert page.texts[:2] == ["a run", "a run"]
    assert page.tags["section"] == 0
    assert re.match(r"written 20\d\d-", page.texts[2])


def test_without_winners_there_are_no_win_columns(tmp_path):
    write_logs(
        tmp_path,
        run()._replace(
            evaluations=[evaluation_without_opponent(1000), evaluation_without_opponent(2000)]
        ),
    )
    page = Page(write_report(tmp_path, {}, {}))
    assert "none 2,000 10 0.5 -3 to 4 77" in text_from(page, "opponent")
    assert "win rate" not in page.texts
    write_logs(tmp_path, run()._replace(evaluations=[evaluation(opponent="")]))
    assert "win rate" in Page(write_report(tmp_path, {}, {})).texts


def test_values_without_a_plain_text_form_are_written(tmp_path):
    numbers = [float("nan"), float("inf"), -1e308]
    write_logs(
        tmp_path,
        run()._replace(
            progress=[
                progress(
                    0, seconds=number, steps_per_second=number, updates_per_second=number,
                    mean_reward=number, win_rate=number,
                )
                for number in numbers
            ] + [progress(0, seconds=1.0)],
            ratings=[rating(rating=number, player=str(number)) for number in numbers],
        ),
    )  # fmt: skip
    summary = {3: float("nan"), "word": "\ud800 笛", "seconds": float("inf"), "some": {1, 2}}
    config = {None: object, "\udc80": b"bytes", (1, 2): {"set": frozenset([3])}}
    page = Page(write_report(tmp_path, summary, config))
    assert "� 笛" in page.texts or "\ud800 笛" in page.texts
    assert "nan" in page.texts


def test_the_report_says_if_a_log_could_not_be_read(tmp_path):
    write_logs(tmp_path, run())
    with (tmp_path / "logs" / "progress.csv").open("a") as log:
        log.write("not a record\n")
    page = Page(write_report(tmp_path, {"steps": 1}, {"seed": 0}))
    [problem] = [text for text in page.texts if "A log could not be read" in text]
    assert "progress.csv, line 10 is not a valid ProgressRecord: it has 1 columns" in problem
    assert "steps" in page.texts
