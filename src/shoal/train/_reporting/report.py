"""The report of a run: an HTML file with its results."""

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
from shoal.train._reporting.formatting import interval_text
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

    The report is created from the logs of the run and the images in its folder ``plots``. Images
    are embedded; only ``video.mp4``, if it exists, stays a separate file. If the logs cannot be
    read, the report says so.

    Args:
        folder: The folder of the run.
        summary: The figures at the top; mappings in it become tables.
        config: The config of the run.
        title: The title of the page; by default the name of the folder.
    """
    problems = []
    try:
        records = read_run(folder)
    except ValueError as error:
        problems.append(f"A log could not be read, so this report has no records: {error}")
        records = RunRecords([], [], [], [])
    latest = records.progress[-1] if records.progress else None
    text = page.page(
        title or folder.absolute().name,
        _subtitle(latest),
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


def _subtitle(latest: ProgressRecord | None) -> str:
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    if latest is None:
        return f"written {now}"
    return f"{count(latest.step)} steps in {duration(latest.seconds)}, written {now}"


def _figures(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in summary.items():
        if not isinstance(value, Mapping):
            yield _label(name), _value_text(name, value)


def _tables(summary: Mapping[str, Any]) -> Iterator[str]:
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield page.table(
                {_label(name): _label(inner), "": _value_text(inner, inner_value)}
                for inner, inner_value in value.items()
            )


def _label(name: object) -> str:
    return str(name).replace("_", " ")


def _value_text(name: object, value: object) -> str:
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
    return value if isinstance(value, str) else json.dumps(_to_json(value), ensure_ascii=False)


def _video(folder: Path) -> list[str]:
    return [page.video("video.mp4")] if (folder / "video.mp4").exists() else []


def _pictures(folder: Path) -> Iterator[str]:
    for name in _PLOTS:
        path = folder / f"{name}.png"
        if path.exists():
            yield page.picture(path.read_bytes(), _label(name))


def _evaluations(records: Sequence[EvaluationRecord]) -> str:
    latest = {record.opponent: record for record in records}.values()
    has_winners = any(record.win_rate is not None for record in latest)
    rows = []
    for record in latest:
        row = {
            "opponent": record.opponent or "none",
            "at step": count(record.step),
            "games": count(record.games),
        }
        if has_winners:
            row["won"] = number(record.wins)
            row["drawn"] = number(record.draws)
            row["lost"] = number(record.losses)
            row["win rate"] = percent(record.win_rate)
            row["95% CI"] = interval_text(record)
        row["mean return"] = number(record.mean_reward)
        if not has_winners:
            row["95% CI"] = interval_text(record)
        row["mean length"] = number(record.mean_length)
        rows.append(row)
    return page.table(rows)


def _league(records: Sequence[RatingRecord]) -> str:
    latest = {record.player: record for record in records}.values()
    return page.table(
        {
            "player": record.player,
            "role": record.role,
            "rating": f"{record.rating:.1f}",
            "mean": f"{record.mean:.1f}",
            "deviation": f"{record.deviation:.1f}",
            "games": count(record.games),
        }
        for record in sorted(latest, key=lambda record: record.rating, reverse=True)
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
            "final mean return": number(span.mean_reward),
            "final win rate": percent(span.win_rate),
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
            "total": count(total),
            "per second, mean": speed(total / last.seconds),
            "per second, median": speed(median(rates)),
            "per second, max": speed(max(rates)),
        }
        for name, total, rates in (
            ("environment steps", last.step, [record.steps_per_second for record in progress]),
            ("updates", last.updates, [record.updates_per_second for record in progress]),
        )
    )
    per_step = number(last.updates / last.step) if last.step else number(None)
    return [speeds, page.cards([("updates per environment step", per_step)])]


def _as_text(config: Mapping[str, Any]) -> str:
    return json.dumps(_to_json(config), indent=2, ensure_ascii=False)


def _to_json(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
