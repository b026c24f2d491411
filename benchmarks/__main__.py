"""The command line of the benchmarks."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection
from functools import partial
from pathlib import Path

from benchmarks.contenders import CONTENDERS, STANDARD
from benchmarks.figures import UnknownFigureError, select
from benchmarks.workloads import STANDARD as STANDARD_WORKLOADS
from benchmarks.workloads import WORKLOADS
from shoal._bench import machine
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, plain

# The modules of a command are imported by that command alone: the demo needs no matplotlib.

_RESULTS = Path(__file__).with_name("results")


def _figures(arguments: Namespace) -> int:
    if arguments.cores:
        # Before any import that counts the cores.
        machine.use_cores(arguments.cores)
    from benchmarks.measure import measure_figures, missing_requirement

    status = 0
    for group, figures in select(arguments.names):
        reason = missing_requirement(group)
        if reason:
            print(f"{group.name} is skipped: {reason}", file=sys.stderr)
            status = status or (2 if arguments.names else 0)
            continue
        options = arguments.output, arguments.rounds, arguments.seconds
        if not measure_figures(group, figures, *options):
            status = 1
    return status


def _list(arguments: Namespace) -> int:
    rows = [
        [figure.name, figure.metric, figure.requirement, str(figure.rounds or group.rounds)]
        for group, figures in select(arguments.names)
        for figure in figures
    ]
    print(plain(Table(["figure", "metric", "requirement", "rounds"], rows)))
    return 0


def _run(arguments: Namespace) -> int:
    from benchmarks.run import run

    settings = Settings(rounds=arguments.rounds, seconds=arguments.seconds)
    cells = arguments.workloads, arguments.contenders, arguments.num_envs
    run(*cells, settings, arguments.output)
    return 0


def _demo(_: Namespace) -> int:
    from benchmarks.demo import demo

    demo()
    return 0


def _names(known: Collection[str], text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ArgumentTypeError(f"unknown: {', '.join(unknown)}; expected {', '.join(known)}")
    return names


def _count(text: str, most: int = sys.maxsize) -> int:
    count = int(text)
    if not 1 <= count <= most:
        expected = "a positive number" if most == sys.maxsize else f"a number from 1 to {most}"
        raise ArgumentTypeError(f"{count} is out of range; expected {expected}")
    return count


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _seconds(text: str) -> float:
    seconds = float(text)
    if seconds <= 0:
        raise ArgumentTypeError("expected a positive number")
    return seconds


def _parser() -> ArgumentParser:
    parser = ArgumentParser("benchmarks", description="Measure the speed of Shoal.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    output = ArgumentParser(add_help=False)
    output.add_argument("--output", type=Path, default=_RESULTS, help="folder of the tables")
    named = ArgumentParser(add_help=False)
    named.add_argument(
        "names", nargs="*", metavar="NAME", help="group or figure, wildcards allowed (default: all)"
    )

    figures = commands.add_parser(
        "figures", parents=[named, output], help="measure figures; all of them take hours"
    )
    figures.set_defaults(command=_figures)
    figures.add_argument("--rounds", type=_count, help="number of rounds (default: see list)")
    figures.add_argument("--seconds", type=_seconds, help="time of a contender in a round")
    figures.add_argument(
        "--cores", type=partial(_count, most=machine.core_count()), help="number of cores to use"
    )

    listing = commands.add_parser("list", parents=[named], help="list figures and requirements")
    listing.set_defaults(command=_list)

    run = commands.add_parser("run", parents=[output], help="measure all libraries; make a plot")
    run.set_defaults(command=_run)
    run.add_argument("--rounds", type=_count, default=15)
    run.add_argument("--seconds", type=_seconds, default=0.1)
    run.add_argument("--workloads", type=partial(_names, WORKLOADS), default=STANDARD_WORKLOADS)
    run.add_argument("--contenders", type=partial(_names, CONTENDERS), default=STANDARD)
    run.add_argument("--num-envs", type=_counts, default=[8, 32, 128])

    demo = commands.add_parser("demo", help="compare with Gymnasium, then train a hockey agent")
    demo.set_defaults(command=_demo)
    return parser


def main() -> int:
    """Run one command and return its exit status."""
    arguments = _parser().parse_args()
    # SIGTERM, like Ctrl-C, must end the processes of the contenders.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status: int = arguments.command(arguments)
        return status
    except UnknownFigureError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
