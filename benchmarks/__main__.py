"""The command line of the benchmarks."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.contenders import CONTENDERS, STANDARD
from benchmarks.learning.settings import LearningSettings
from benchmarks.libraries import LIBRARIES
from benchmarks.training import TrainingSettings
from benchmarks.workloads import STANDARD as STANDARD_WORKLOADS
from benchmarks.workloads import WORKLOADS
from shoal._bench import machine
from shoal._bench.runner import Settings

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
    from benchmarks.figures import check, matching

    figures = matching(arguments.only, slow=arguments.slow)
    if not figures:
        hint = "; a slow one's does" if matching(arguments.only, slow=True) else ""
        print(f"no figure's description contains {arguments.only!r}{hint}", file=sys.stderr)
        return 2
    return 0 if check(_settings(arguments), figures) else 1


def _cells(arguments: Namespace) -> int:
    from benchmarks.cells import measure_cells

    settings = _settings(arguments)
    measure_cells(arguments.workloads, arguments.num_envs, settings, arguments.output)
    return 0


def _scale(arguments: Namespace) -> int:
    from benchmarks.scale import measure_scale

    machine.use_cores(arguments.cores)
    return 0 if measure_scale(_settings(arguments), arguments.output) else 1


def _sb3(arguments: Namespace) -> int:
    from benchmarks.sb3 import measure_sb3

    settings, training = _settings(arguments), _training_settings(arguments)
    return 0 if measure_sb3(settings, training, arguments.output) else 1


def _kernels(arguments: Namespace) -> int:
    from benchmarks.kernels import measure_kernels

    machine.use_cores(arguments.cores)
    return 0 if measure_kernels(_settings(arguments), arguments.output) else 1


def _hockey(arguments: Namespace) -> int:
    from benchmarks.hockey import measure_hockey

    machine.use_cores(arguments.cores)
    return 0 if measure_hockey(_settings(arguments), arguments.output) else 1


def _atari(arguments: Namespace) -> int:
    from benchmarks.atari import measure_atari

    machine.use_cores(arguments.cores)
    return 0 if measure_atari(_settings(arguments), arguments.output) else 1


def _remote(arguments: Namespace) -> int:
    from benchmarks.remote.measuring import measure_remote

    return 0 if measure_remote(_settings(arguments), arguments.output) else 1


def _live(arguments: Namespace) -> int:
    from benchmarks.live import measure_live

    return 0 if measure_live(_settings(arguments), arguments.output) else 1


def _libraries(arguments: Namespace) -> int:
    from benchmarks.libraries import measure_libraries

    reached = measure_libraries(arguments.only, arguments.rounds, arguments.output)
    return 0 if reached else 1


def _learning(arguments: Namespace) -> int:
    # Before anything computes: what is imported counts the cores.
    machine.use_cores(arguments.cores)
    import torch

    from benchmarks.learning.figures import planned
    from benchmarks.learning.measuring import measure_learning

    settings = LearningSettings(
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        device=arguments.device,
        ppo_envs=arguments.num_envs,
        steps=arguments.steps,
    )
    if settings.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU that torch can use", file=sys.stderr)
        return 2
    plan = planned(settings, arguments.only)
    if not plan.contests:
        print(f"nothing's description contains {arguments.only!r}", file=sys.stderr)
        return 2
    output = None if arguments.only else arguments.output
    return 0 if measure_learning(settings, plan, output) else 1


def _goals(arguments: Namespace) -> int:
    from benchmarks.learning.goals import measure_goals

    return 0 if measure_goals(arguments.seeds, arguments.output) else 1


def _training(arguments: Namespace) -> int:
    from benchmarks.training import measure_training

    return 0 if measure_training(_training_settings(arguments)) else 1


def _overhead(_: Namespace) -> int:
    from benchmarks.overhead import measure_overhead

    median, lower, upper = measure_overhead(num_envs=128)
    print(f"{median:.3f} us per slot over env.step, quartiles {lower:.3f} to {upper:.3f}")
    return 0


def _settings(arguments: Namespace) -> Settings:
    return Settings(rounds=arguments.rounds, seconds=arguments.seconds)


def _training_settings(arguments: Namespace) -> TrainingSettings:
    return TrainingSettings(rounds=arguments.training_rounds, steps=arguments.steps)


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


def _seeds(text: str) -> list[int]:
    seeds = [int(part) for part in text.split(",")]
    if min(seeds) < 0:
        raise ArgumentTypeError("expected numbers that are not negative")
    return seeds


def _cores(text: str) -> int:
    cores, available = _count(text), machine.core_count()
    if cores > available:
        raise ArgumentTypeError(f"there are {available} cores")
    return cores


def _measured(defaults: Settings) -> ArgumentParser:
    """Make the options of how to measure."""
    options = ArgumentParser(add_help=False)
    options.add_argument(
        "--rounds", type=_count, default=defaults.rounds, help="how many (%(default)s)"
    )
    options.add_argument(
        "--seconds",
        type=_seconds,
        default=defaults.seconds,
        help="how long each contender is measured in a round (%(default)s)",
    )
    return options


def _trained(defaults: TrainingSettings, rounds_option: str) -> ArgumentParser:
    """Make the options of how to train, with this name for the number of rounds."""
    options = ArgumentParser(add_help=False)
    options.add_argument(
        rounds_option,
        dest="training_rounds",
        metavar="ROUNDS",
        type=_count,
        default=defaults.rounds,
        help="how many times to train with each vector (%(default)s)",
    )
    options.add_argument(
        "--steps",
        type=_count,
        default=defaults.steps,
        help="how many environment steps to learn from (%(default)s)",
    )
    return options


def _written() -> ArgumentParser:
    """Make the option of where to write."""
    options = ArgumentParser(add_help=False)
    options.add_argument("--output", type=Path, default=Path(__file__).with_name("results"))
    return options


def _chosen(num_envs: list[int]) -> ArgumentParser:
    """Make the options of which cells to measure."""
    options = ArgumentParser(add_help=False)
    options.add_argument("--workloads", type=_names(WORKLOADS), default=STANDARD_WORKLOADS)
    options.add_argument("--num-envs", type=_counts, default=num_envs)
    return options


def _parser() -> ArgumentParser:
    parser = ArgumentParser("benchmarks", description="How fast Shoal steps environments.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    measured, written = _measured(Settings()), _written()

    run = commands.add_parser(
        "run",
        parents=[measured, _chosen([8, 32, 128]), written],
        help="measure all, with tables and plots",
    )
    run.set_defaults(command=_run)
    run.add_argument("--contenders", type=_names(CONTENDERS), default=STANDARD)

    demo = commands.add_parser(
        "demo", help="Shoal next to Gymnasium, and hockey learnt in a minute"
    )
    demo.set_defaults(command=_demo)

    figures = commands.add_parser(
        "figures", parents=[measured], help="check the figures that Shoal must reach"
    )
    figures.set_defaults(command=_figures)
    figures.add_argument(
        "--only", metavar="TEXT", default="", help="those whose description contains this text"
    )
    figures.add_argument(
        "--slow", action="store_true", help="with those that take minutes: the training"
    )

    cells = commands.add_parser(
        "cells",
        parents=[measured, _chosen([1, 2, 4, 8, 16, 32, 64, 128]), written],
        help="Shoal against the best peer in every cell",
    )
    cells.set_defaults(command=_cells)

    # A call that steps 512 environments, each for 100 us, in one process takes 50 ms.
    scale = commands.add_parser(
        "scale",
        parents=[_measured(Settings(seconds=0.5)), written],
        help="what many cores are worth",
    )
    scale.set_defaults(command=_scale)
    scale.add_argument(
        "--cores", type=_cores, default=machine.core_count(), help="how many to use (%(default)s)"
    )

    sb3 = commands.add_parser(
        "sb3",
        parents=[measured, _trained(TrainingSettings(), "--training-rounds"), written],
        help="Shoal behind Stable-Baselines3's interface against Stable-Baselines3",
    )
    sb3.set_defaults(command=_sb3)

    kernels = commands.add_parser(
        "kernels",
        parents=[measured, written],
        help="Shoal's kernels against EnvPool, plain loops in C, and themselves on one thread",
    )
    kernels.set_defaults(command=_kernels)
    kernels.add_argument(
        "--cores", type=_cores, default=machine.core_count(), help="how many to use (%(default)s)"
    )

    hockey = commands.add_parser(
        "hockey",
        parents=[measured, written],
        help="the hockey kernel against Box2D, and against itself on one thread",
    )
    hockey.set_defaults(command=_hockey)
    hockey.add_argument(
        "--cores", type=_cores, default=machine.core_count(), help="how many to use (%(default)s)"
    )

    # A call that steps 32 games on two cores takes 5 ms.
    atari = commands.add_parser(
        "atari",
        parents=[_measured(Settings(seconds=0.5)), written],
        help="Atari games against ale-py, EnvPool, Gymnasium and Stable-Baselines3",
    )
    atari.set_defaults(command=_atari)
    atari.add_argument(
        "--cores", type=_cores, default=machine.core_count(), help="how many to use (%(default)s)"
    )

    remote = commands.add_parser(
        "remote",
        parents=[measured, written],
        help="remote vectors against bare sockets, gRPC, websockets and JSON",
    )
    remote.set_defaults(command=_remote)

    live = commands.add_parser(
        "live",
        parents=[_measured(Settings(rounds=21, seconds=1.0)), written],
        help="what it costs to be watched on a page",
    )
    live.set_defaults(command=_live)

    libraries = commands.add_parser(
        "libraries",
        parents=[written],
        help="the Ray pool, TorchRL, Tianshou, PettingZoo and RLlib on Shoal and on their own",
    )
    libraries.set_defaults(command=_libraries)
    libraries.add_argument(
        "--rounds", type=_count, default=Settings().rounds, help="how many (%(default)s)"
    )
    libraries.add_argument(
        "--only",
        type=_names(LIBRARIES),
        default=list(LIBRARIES),
        metavar="NAME,NAME,...",
        help=f"of {', '.join(LIBRARIES)}",
    )

    # A batch of updates, or a rollout, takes up to a second.
    defaults = LearningSettings()
    learning = commands.add_parser(
        "learning",
        parents=[_measured(defaults), written],
        help="how fast Shoal's agents collect and learn, next to Stable-Baselines3",
    )
    learning.set_defaults(command=_learning)
    learning.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default=defaults.device,
        help="where agents compute (%(default)s)",
    )
    learning.add_argument(
        "--num-envs",
        type=_count,
        metavar="NUMBER",
        help="of the environments that PPO learns in (512, on a GPU 8192)",
    )
    learning.add_argument(
        "--steps",
        type=_count,
        default=defaults.steps,
        help="of a round, where 1, 4 and 8 environments are compared (%(default)s)",
    )
    learning.add_argument(
        "--only",
        metavar="TEXT",
        default="",
        help="what has this text in its description; nothing is written then",
    )
    learning.add_argument(
        "--cores", type=_cores, default=machine.core_count(), help="how many to use (%(default)s)"
    )

    goals = commands.add_parser(
        "goals",
        parents=[written],
        help="how long the configs that come along take to learn what they promise",
    )
    goals.set_defaults(command=_goals)
    goals.add_argument(
        "--seeds",
        type=_seeds,
        default=[0, 1, 2],
        metavar="SEED,SEED,...",
        help="each is a training (0,1,2)",
    )

    training = commands.add_parser(
        "training",
        parents=[_trained(TrainingSettings(), "--rounds")],
        help="how long Stable-Baselines3 learns with its own vectors and with Shoal's",
    )
    training.set_defaults(command=_training)

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
