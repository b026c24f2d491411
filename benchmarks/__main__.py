"""The command line of the benchmarks."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.runner import Settings
from benchmarks.workloads import WORKLOADS

# Each command imports its own module: the demo needs no matplotlib.


def _run(arguments: Namespace) -> int:
    from benchmarks.run import run

    run(
        arguments.workloads,
        arguments.contenders,
        arguments.num_envs,
        _settings(arguments),
        arguments.output,
    )
    return 0


def _demo(_: Namespace) -> int:
    from benchmarks.demo import demo

    demo()
    return 0


def _figures(arguments: Namespace) -> int:
    from benchmarks.figures import check

    return 0 if check(_settings(arguments)) else 1


def _overhead(_: Namespace) -> int:
    from benchmarks.overhead import measure_overhead

    median, lower, upper = measure_overhead(num_envs=128)
    print(f"{median:.3f} us per slot over env.step, quartiles {lower:.3f} to {upper:.3f}")
    return 0


def _settings(arguments: Namespace) -> Settings:
    return Settings(rounds=arguments.rounds, seconds=arguments.seconds)


def _names(known: Collection[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ArgumentTypeError(f"{', '.join(unknown)} unknown; there are {', '.join(known)}")
        return names

    return parse


def _seconds(text: str) -> float:
    seconds = float(text)
    if seconds <= 0:
        raise ArgumentTypeError("expected a positive number")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ArgumentTypeError("expected a positive number")
    return count


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _parser() -> ArgumentParser:
    parser = ArgumentParser("benchmarks", description="How fast Shoal steps environments.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    measured = ArgumentParser(add_help=False)
    defaults = Settings()
    measured.add_argument(
        "--rounds", type=_count, default=defaults.rounds, help="how many (%(default)s)"
    )
    measured.add_argument(
        "--seconds",
        type=_seconds,
        default=defaults.seconds,
        help="how long each contender is measured in a round (%(default)s)",
    )

    run = commands.add_parser("run", parents=[measured], help="measure all, with tables and plots")
    run.set_defaults(command=_run)
    run.add_argument("--workloads", type=_names(WORKLOADS), default=list(WORKLOADS))
    run.add_argument("--contenders", type=_names(CONTENDERS), default=list(CONTENDERS))
    run.add_argument("--num-envs", type=_counts, default=[8, 32, 128])
    run.add_argument("--output", type=Path, default=Path(__file__).with_name("results"))

    demo = commands.add_parser("demo", help="Shoal next to Gymnasium, in less than a minute")
    demo.set_defaults(command=_demo)

    figures = commands.add_parser(
        "figures", parents=[measured], help="check the figures that Shoal must reach"
    )
    figures.set_defaults(command=_figures)

    overhead = commands.add_parser("overhead", help="Shoal's own cost for each slot")
    overhead.set_defaults(command=_overhead)
    return parser


def main() -> int:
    """Run one command; returns its exit status."""
    arguments = _parser().parse_args()
    # A polite kill ends contenders' processes as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command: Callable[[Namespace], int] = arguments.command
    try:
        return command(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
