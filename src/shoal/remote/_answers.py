"""Answers of a server to resets and steps, read and checked."""

from __future__ import annotations

import numpy as np

from shoal._spaces import Layout
from shoal._spaces.leaves import batch_of_leaves
from shoal.pools._base import Batch
from shoal.remote._info_codec import unpack_told
from shoal.remote._link import Link
from shoal.remote._segments import FLAGS, REWARDS, SLOTS, Segments, check_flags, checked_slots
from shoal.remote._wire import SOME_SLOTS, Header

__all__ = ["AnswerReader"]

_RESULTS = REWARDS, FLAGS, FLAGS


class AnswerReader:
    """Makes batches of messages.

    Args:
        layout: Of one slot's observations.
        num_envs: Number of slots.
    """

    def __init__(self, layout: Layout, num_envs: int) -> None:
        self._layout = layout
        self._num_envs = num_envs
        self._whole = Segments(layout, _RESULTS)
        self._every_slot = np.arange(num_envs)

    @property
    def largest(self) -> int:
        """Bytes that the tensors of an answer may have."""
        return self._whole.bytes_of(self._num_envs, SOME_SLOTS)

    def read(self, link: Link, header: Header) -> Batch:
        """Read what follows this header.

        Raises:
            ProtocolError: It is not what it must be.
        """
        self._whole.check(header, self._num_envs)
        meta = link.read_meta(header)
        arrays = self._whole.room(header.rows)
        buffers = list(arrays)
        slots = self._every_slot
        if header.flags & SOME_SLOTS:
            slots = np.empty(header.rows, SLOTS)
            buffers.insert(0, slots)
        link.read_into(buffers)
        check_flags(arrays)
        if header.flags & SOME_SLOTS:
            checked_slots(slots, self._num_envs)
        objects, infos = unpack_told(meta, len(self._layout.objects), header.rows)
        rewards, terminated, truncated, *leaves = arrays
        observations = batch_of_leaves(self._layout, leaves, objects)
        return Batch(slots, observations, rewards, terminated, truncated, infos)
