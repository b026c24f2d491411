"""The main function of a worker process."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from typing import Any

from gymnasium import Env

from shoal import _native
from shoal._memory import BoardMemory, VectorColumns
from shoal.pools._doorbell_pipes import DoorbellPipes
from shoal.pools._environments import close_environments, naming_slot, open_environments
from shoal.pools._messages import Message, Outcome, Reply
from shoal.pools._processes.env_recipe import BuildResult, Recipe, UnpackResult, unpack_recipe
from shoal.pools._processes.env_registry import register_specs
from shoal.pools._processes.mailbox import MessageSocket, dumps, loads
from shoal.pools._worker import Setup, Worker

__all__ = ["Attachment", "main"]

_MAX_DESCRIPTORS = 8


class Attachment:
    """What a worker needs to attach to the pool's memory, besides its descriptors."""

    def __init__(self, setup: Setup, workers: int, may_spin: bool) -> None:
        self.setup = setup
        self.workers = workers
        self.may_spin = may_spin


class _WorkerMailbox:
    """The mailbox of a worker process."""

    def __init__(self, connection: MessageSocket) -> None:
        self._connection = connection

    def receive(self) -> Message:
        message: Message = loads(_receive(self._connection))
        return message

    def pack(self, message: Message) -> bytes:
        try:
            return dumps(message, by_value=False)
        except Exception as failure:
            failure.add_note("shoal: while sending it from a worker process to the caller")
            if isinstance(message, Outcome):
                part, slot = _find_unpicklable(message)
                failure.add_note(f"shoal: in slot {slot}, in its {part}")
                return dumps(Outcome(message.slot, errors=[(slot, failure)]), by_value=False)
            if isinstance(message, Reply):
                return dumps(Reply(message.call, [], error=failure), by_value=False)
            raise

    def send(self, packed: bytes) -> None:
        self._connection.send(packed)


def main(
    descriptor: int, parent: int, dies_with_thread: bool, recipe: Recipe | None = None
) -> None:
    """Build the environments of a recipe, then work until the pool sends ``Close``.

    Args:
        descriptor: The descriptor of the socket that is connected to the pool.
        parent: The process that this one must not outlive.
        dies_with_thread: Whether to end this process also when the thread that started it ends;
            only if that thread lives as long as its process.
        recipe: What to build; None if the pool sends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C
    _native.start_lifeline(parent, dies_with_thread)
    # Only the thread on duty may read, so threads do not read while they send.
    connection = MessageSocket(socket.socket(fileno=descriptor), reads_while_sending=False)
    try:
        _serve(connection, recipe)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(1)  # the pool has ended
    finally:
        connection.close()


def _receive(connection: MessageSocket) -> bytes:
    packed = connection.receive()
    assert packed is not None, "received without a timeout"
    return packed


def _serve(connection: MessageSocket, recipe: Recipe | None) -> None:
    try:
        if recipe is None:
            recipe = unpack_recipe(_receive(connection))
        if recipe.core is not None:
            os.sched_setaffinity(0, {recipe.core})
        register_specs(recipe.specs)
    except BaseException as error:
        connection.send(dumps(UnpackResult(error), by_value=False))
        return
    connection.send(dumps(UnpackResult(), by_value=False))
    try:
        envs = open_environments(recipe.factories, recipe.first, recipe.num_envs)
    except BaseException as error:
        connection.send(dumps(BuildResult(error=error), by_value=False))
        return
    try:
        result = _describe(envs, recipe)
    except BaseException as error:
        close_environments(envs, reporting=False)
        connection.send(dumps(BuildResult(error=error), by_value=False))
        return
    try:
        connection.send(dumps(result, by_value=False))
        descriptors = connection.receive_descriptors(_MAX_DESCRIPTORS)
        attachment = pickle.loads(_receive(connection))
        _attach(attachment, descriptors, envs, connection).run()
    except BaseException:
        close_environments(envs, reporting=False)
        raise


def _describe(envs: list[Env[Any, Any]], recipe: Recipe) -> BuildResult:
    # Equal spaces become one object, which is pickled once.
    distinct: list[tuple[Any, Any]] = []
    spaces = []
    for slot, env in enumerate(envs, recipe.first):
        with naming_slot(slot, recipe.num_envs, "asking for its spaces"):
            pair = env.observation_space, env.action_space
        same = next((other for other in distinct if other == pair), None)
        if same is None:
            distinct.append(pair)
        spaces.append(same or pair)
    return BuildResult(spaces, dict(envs[0].metadata), envs[0].render_mode)


def _attach(
    attachment: Attachment,
    descriptors: list[int],
    envs: list[Env[Any, Any]],
    connection: MessageSocket,
) -> Worker:
    setup = attachment.setup
    columns = VectorColumns(
        setup.observations,
        setup.actions,
        setup.num_envs,
        setup.banks,
        descriptor=descriptors[0],
    )
    memory = BoardMemory(attachment.workers, setup.num_envs, descriptor=descriptors[1])
    ends = DoorbellPipes.attached(setup.worker, attachment.workers, descriptors[2:])
    board = memory.board(attachment.may_spin, ends)
    columns.close()
    memory.close()
    return Worker(setup, envs, columns, board, _WorkerMailbox(connection))


def _find_unpicklable(outcome: Outcome) -> tuple[str, int]:
    """Return the part of an outcome that cannot be pickled, and its slot."""
    for slot, info in outcome.events:
        try:
            dumps(Outcome(slot, [(slot, info)]), by_value=False)
        except Exception:
            return "info", slot
    return "observation", -1 if outcome.slot is None else outcome.slot
