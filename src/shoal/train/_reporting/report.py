"""The report of a run: one HTML file that shows what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from numbers import Integral, Real
from pathlib import Path
from statistics import median
from typing import Any

from shoal._formatting import count, duration, number, percent, speed
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting import page
from shoal.train._reporting.formatting import interval
from shoal.train._reporting.log_reader import RunRecords, read_run
from shoal.train._reporting.phase_spans import phase_spans

__all__ = ["write_report"]

_PLOTS = ("learning_curve", "win_rates", "evaluations", "ratings", "losses", "throughput")


def write_report(
    folder: Path,
    summary: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    title: str | None = None,
) -> Path:
    """Write ``report.html`` into the folder of a run, and return its path.

    It is made of the logs of the run, and of the plots that are in the folder ``plots``. The
    pictures are inside it; only ``video.mp4``, if there is one, stays beside it. Logs that cannot
    be read are reported on the page.

    Args:
        folder: Of the run.
        summary: The figures at the top; mappings in it become tables.
        config: With what the run was made.
        title: Of the page; by default the name of the folder.
    """
    problems = []
    try:
        records = read_run(folder)
    except ValueError as error:
        problems.append(f"A log could not be read, so what it tells is missing here: {error}")
        records = RunRecords([], [], [], [])
    newest = records.progress[-1] if records.progress else None
    text = page.page(
        title or folder.absolute().name,
        _below(newest),
        [
            *map(page.notice, problems),
            page.section("Summary", page.cards(_figures(summary)), *_tables(summary)),
            page.section("Video", *_video(folder)),
            page.section("Evaluation", _evaluations(records.evaluations)),
            page.section("League", _league(records.ratings)),
            page.section("Plots", *_pictures(folder / "plots")),
            page.section("Phases", _phases(records.progress)),
            page.section("Throughput", *_throughput(records.progress)),
            page.section("Configuration", page.block(_as_text(config)) if config else ""),
        ],
    )
    path = folder / "report.html"
    path.write_text(text, "utf-8", "xmlcharrefreplace")
    return path


def _below(newest: ProgressRecord | None) -> str:
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    if newest is None:
        return f"written {now}"
    return f"{count(newest.step)} steps in {duration(newest.seconds)}, written {now}"


def _figures(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in summary.items():
        if not isinstance(value, Mapping):
            yield _label(name), _told(name, value)


def _tables(summary: Mapping[str, Any]) -> Iterator[str]:
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield page.table(
                {_label(name): _label(inner), "": _told(inner, told)}
                for inner, told in value.items()
            )


def _label(name: object) -> str:
    return str(name).replace("_", " ")


def _told(name: object, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        if str(name).endswith("seconds"):
            return duration(float(value))
        if str(name).endswith("win_rate"):
            return percent(float(value))
        return count(int(value)) if isinstance(value, Integral) else number(float(value))
    if value is None:
        return number(None)
    return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)


def _video(folder: Path) -> list[str]:
    return [page.video("video.mp4")] if (folder / "video.mp4").exists() else []


def _pictures(folder: Path) -> Iterator[str]:
    for name in _PLOTS:
        path = folder / f"{name}.png"
        if path.exists():
            yield page.picture(path.read_bytes(), _label(name))


def _evaluations(records: Sequence[EvaluationRecord]) -> str:
    newest = {record.opponent: record for record in records}.values()
    somebody_wins = any(record.win_rate is not None for record in newest)
    rows = []
    for record in newest:
        row = {
            "against": record.opponent or "nobody",
            "at step": count(record.step),
            "games": count(record.games),
        }
        if somebody_wins:
            row["won"] = number(record.wins)
            row["drawn"] = number(record.draws)
            row["lost"] = number(record.losses)
            row["win rate"] = percent(record.win_rate)
            row["95%"] = interval(record)
        row["mean return"] = number(record.mean_reward)
        if not somebody_wins:
            row["95%"] = interval(record)
        row["mean length"] = number(record.mean_length)
        rows.append(row)
    return page.table(rows)


def _league(records: Sequence[RatingRecord]) -> str:
    newest = {record.player: record for record in records}.values()
    return page.table(
        {
            "player": record.player,
            "role": record.role,
            "rating": f"{record.rating:.1f}",
            "mean": f"{record.mean:.1f}",
            "deviation": f"{record.deviation:.1f}",
            "games": count(record.games),
        }
        for record in sorted(newest, key=lambda record: record.rating, reverse=True)
    )


def _phases(progress: Sequence[ProgressRecord]) -> str:
    return page.table(
        {
            "phase": f"{span.number + 1}. {span.name}",
            "from step": count(span.first_step),
            "to step": count(span.last_step),
            "episodes": count(span.episodes),
            "updates": count(span.updates),
            "time": duration(span.seconds),
            "mean return at its end": number(span.mean_reward),
            "wins at its end": percent(span.win_rate),
        }
        for span in phase_spans(progress)
    )


def _throughput(progress: Sequence[ProgressRecord]) -> list[str]:
    if not progress or not progress[-1].seconds > 0:
        return []
    last = progress[-1]
    speeds = page.table(
        {
            "": name,
            "in all": count(total),
            "a second, over all": speed(total / last.seconds),
            "a second, median": speed(median(told)),
            "a second, best": speed(max(told)),
        }
        for name, total, told in (
            ("environment steps", last.step, [record.steps_per_second for record in progress]),
            ("updates", last.updates, [record.updates_per_second for record in progress]),
        )
    )
    each = number(last.updates / last.step) if last.step else number(None)
    return [speeds, page.cards([("updates for each environment step", each)])]


def _as_text(config: Mapping[str, Any]) -> str:
    return json.dumps(_plain(config), indent=2, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
