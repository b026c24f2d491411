"""The measurements in the README are those of the latest benchmark run."""

import re

from tests.docs.pages import ROOT

CONTENDERS = {
    "Gymnasium Sync": "gymnasium-sync",
    "Gymnasium Async": "gymnasium-async",
    "SB3 Dummy": "sb3-dummy",
    "SB3 Subproc": "sb3-subproc",
    "PufferLib": "pufferlib-serial",
    "EnvPool": "envpool",
}
"""The column of the README's table and the row of the benchmark's table for each peer."""


def rows(text):
    """The cells of each line of the tables in a text."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in lines]


def latest():
    """Every rate of the latest run, such as ``"12.7 M"``, by workload, contender and slots."""
    rates = {}
    for name, *cells in rows((ROOT / "benchmarks" / "results" / "latest.md").read_text()):
        if any(cell.endswith("envs") for cell in cells):
            workload, counts = name, [cell.partition(" ")[0] for cell in cells[::2]]
        elif not name.startswith("-"):
            for count, cell in zip(counts, cells[::2], strict=True):
                rates[workload, name, int(count)] = cell.partition("±")[0].strip()
    return rates


def expected(header, label):
    """What a line of the README's table must show."""
    workload, kind, count = re.fullmatch(r"`(\w+)`: (.+), (\d+) slots", label).groups()
    subject = "shoal-kernel" if "kernel" in kind else "shoal"
    peers = {"EnvPool"} if "kernel" in kind else {*CONTENDERS} - {"EnvPool"}
    names = [subject, *(CONTENDERS[name] if name in peers else "" for name in header[2:])]
    rates = latest()
    return [label, *(rates.get((workload, name, int(count))) or "-" for name in names)]


def test_the_table_of_the_readme_is_an_excerpt_of_the_latest_run():
    table = (ROOT / "README.md").read_text().partition("## How fast")[2].partition("\n##")[0]
    header, _, *lines = rows(table)
    assert header[:2] == ["environment steps per second", "Shoal"]
    assert set(header[2:]) == set(CONTENDERS)
    assert len(lines) > 4
    assert lines == [expected(header, label) for label, *_ in lines]
