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
from shoal.pools._processes.env_recipe import Introduction, Recipe, Unpacked, unpack_recipe
from shoal.pools._processes.env_registry import register_specs
from shoal.pools._processes.mailbox import Mail, dumps, loads
from shoal.pools._worker import Setup, Worker

__all__ = ["Attachment", "main"]

_MOST_DESCRIPTORS = 8


class Attachment:
    """How a worker attaches to the pool's memory, besides the descriptors that come with it."""

    def __init__(self, setup: Setup, workers: int, may_spin: bool) -> None:
        self.setup = setup
        self.workers = workers
        self.may_spin = may_spin


class _WorkerMail:
    """The mailbox of a worker process."""

    def __init__(self, mail: Mail) -> None:
        self._mail = mail

    def receive(self) -> Message:
        letter = self._mail.receive()
        assert letter is not None, "there is no limit to the time"
        message: Message = loads(letter)
        return message

    def pack(self, message: Message) -> bytes:
        try:
            return dumps(message, by_value=False)
        except Exception as failure:
            failure.add_note("shoal: it was to be sent from a worker process to the caller")
            if isinstance(message, Outcome):
                failed, slot = _unsendable(message)
                failure.add_note(f"shoal: in slot {slot}, in its {failed}")
                return dumps(Outcome(message.slot, errors=[(slot, failure)]), by_value=False)
            if isinstance(message, Reply):
                return dumps(Reply(message.call, [], error=failure), by_value=False)
            raise

    def send(self, packed: bytes) -> None:
        self._mail.send(packed)


def main(
    descriptor: int, parent: int, dies_with_thread: bool, recipe: Recipe | None = None
) -> None:
    """Build environments as the recipe says, then work until told to close.

    Args:
        descriptor: Of the socket that leads to the pool.
        parent: The process that this one must not outlive.
        dies_with_thread: Whether the thread that has started this process lives as long as its
            process does, so that its end is another sign.
        recipe: What to build; None if it comes by mail.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to deal with
    _native.start_lifeline(parent, dies_with_thread)
    # Only the thread on duty reads: the others must not while they send.
    mail = Mail(socket.socket(fileno=descriptor), reads_while_sending=False)
    try:
        _serve(mail, recipe)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(1)  # the pool is gone, and nobody is left to be told
    finally:
        mail.close()


def _serve(mail: Mail, recipe: Recipe | None) -> None:
    try:
        if recipe is None:
            letter = mail.receive()
            assert letter is not None, "there is no limit to the time"
            recipe = unpack_recipe(letter)
        if recipe.core is not None:
            os.sched_setaffinity(0, {recipe.core})
        register_specs(recipe.specs)
    except BaseException as error:
        mail.send(dumps(Unpacked(error), by_value=False))
        return
    mail.send(dumps(Unpacked(), by_value=False))
    try:
        envs = open_environments(recipe.factories, recipe.first, recipe.num_envs)
    except BaseException as error:
        mail.send(dumps(Introduction(error=error), by_value=False))
        return
    try:
        introduction = _introduction(envs, recipe)
    except BaseException as error:
        close_environments(envs, reporting=False)
        mail.send(dumps(Introduction(error=error), by_value=False))
        return
    try:
        mail.send(dumps(introduction, by_value=False))
        descriptors = mail.receive_descriptors(_MOST_DESCRIPTORS)
        letter = mail.receive()
        assert letter is not None, "there is no limit to the time"
        _attach(pickle.loads(letter), descriptors, envs, mail).run()
    except BaseException:
        close_environments(envs, reporting=False)
        raise


def _introduction(envs: list[Env[Any, Any]], recipe: Recipe) -> Introduction:
    # Equal spaces become one object, which is pickled once.
    known: list[tuple[Any, Any]] = []
    spaces = []
    for slot, env in enumerate(envs, recipe.first):
        with naming_slot(slot, recipe.num_envs, "asking for its spaces"):
            pair = env.observation_space, env.action_space
        same = next((other for other in known if other == pair), None)
        if same is None:
            known.append(pair)
        spaces.append(same or pair)
    return Introduction(spaces, dict(envs[0].metadata), envs[0].render_mode)


def _attach(
    attachment: Attachment, descriptors: list[int], envs: list[Env[Any, Any]], mail: Mail
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
    return Worker(setup, envs, columns, board, _WorkerMail(mail))


def _unsendable(outcome: Outcome) -> tuple[str, int]:
    """What of an outcome cannot be sent, and the slot that it is from."""
    for slot, info in outcome.events:
        try:
            dumps(Outcome(slot, [(slot, info)]), by_value=False)
        except Exception:
            return "info", slot
    return "observation", -1 if outcome.slot is None else outcome.slot
