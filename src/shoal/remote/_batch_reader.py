"""The reader of BATCH messages."""

from __future__ import annotations

import numpy as np

from shoal._spaces import Layout
from shoal._spaces.leaves import batch_of_leaves
from shoal.pools._base import Batch
from shoal.remote._batch_meta import unpack_batch_meta
from shoal.remote._body_format import (
    BOOL_DTYPE,
    REWARD_DTYPE,
    SLOT_DTYPE,
    BodyFormat,
    check_booleans,
    check_slots,
)
from shoal.remote._link import Link
from shoal.remote._wire import SOME_SLOTS, Header

__all__ = ["BatchReader"]


class BatchReader:
    """Reads BATCH messages and checks them.

    Args:
        layout: The layout of one slot's observation.
        num_envs: Number of slots.
    """

    def __init__(self, layout: Layout, num_envs: int) -> None:
        self._layout = layout
        self._num_envs = num_envs
        self._format = BodyFormat(layout, (REWARD_DTYPE, BOOL_DTYPE, BOOL_DTYPE))
        self._all_slots = np.arange(num_envs)

    @property
    def max_body(self) -> int:
        """Largest body of a message in bytes."""
        return self._format.size_of(self._num_envs, SOME_SLOTS)

    def read(self, link: Link, header: Header) -> Batch:
        """Read the batch after this header.

        Raises:
            ProtocolError: The message is invalid.
        """
        self._format.check_header(header, self._num_envs)
        meta = link.read_meta(header)
        arrays = self._format.allocate(header.rows)
        buffers = list(arrays)
        slots = self._all_slots
        if header.flags & SOME_SLOTS:
            slots = np.empty(header.rows, SLOT_DTYPE)
            buffers.insert(0, slots)
        link.read_into(buffers)
        check_booleans(arrays)
        if header.flags & SOME_SLOTS:
            check_slots(slots, self._num_envs)
        objects, infos = unpack_batch_meta(meta, len(self._layout.objects), header.rows)
        rewards, terminated, truncated, *leaves = arrays
        observations = batch_of_leaves(self._layout, leaves, objects)
        return Batch(slots, observations, rewards, terminated, truncated, infos)
