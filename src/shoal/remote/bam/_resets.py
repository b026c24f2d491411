"""Encoding of slots and seeds in a RESET request.

An empty list of actions means all slots; otherwise ``ns`` of each action is the number of a slot.
The seed of the request is that of slot 0, and slot k uses the seed plus k, as in Gymnasium's
vectors. A seed of 0 means none. Other combinations of seeds, and the seed 0, are sent in the
actions: ``discrete_action`` of a slot contains its seed, or is empty for none. A server that only
reads the seed of the request resets without a seed in that case.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.remote.bam._messages import GymAction, GymAPIRequest, MessageError

__all__ = ["read_reset", "reset_fields", "slot_of"]


def reset_fields(
    slots: Sequence[int], seeds: Sequence[int | None], num_envs: int
) -> tuple[int, list[GymAction]]:
    """Return the seed and the actions of a request that resets these slots.

    >>> reset_fields([0, 1], [42, 43], num_envs=2)
    (42, [])
    >>> reset_fields([1], [0], num_envs=2)
    (0, [GymAction(ns='1', discrete_action=[0], continuous_action=[])])
    """
    bases = {None if seed is None else seed - slot for slot, seed in zip(slots, seeds, strict=True)}
    base = bases.pop() if len(bases) == 1 else 0
    if base is None or base > 0:
        is_all = list(slots) == list(range(num_envs))
        return base or 0, [] if is_all else [GymAction(ns=str(slot)) for slot in slots]
    named = zip(slots, seeds, strict=True)
    return 0, [
        GymAction(ns=str(slot), discrete_action=[] if seed is None else [seed])
        for slot, seed in named
    ]


def read_reset(request: GymAPIRequest, num_envs: int) -> dict[int, int | None]:
    """Return the seed of each slot that a request resets, in the order of the request.

    Raises:
        MessageError: A slot does not exist or is repeated, or a seed is negative.
    """
    named = request.action or [GymAction(ns=str(slot)) for slot in range(num_envs)]
    seeds: dict[int, int | None] = {}
    for position, action in enumerate(named):
        slot = slot_of(action.ns, position, num_envs)
        if slot in seeds:
            raise MessageError(f"slot {slot} is repeated")
        if action.discrete_action:
            seeds[slot] = action.discrete_action[0]
        else:
            seeds[slot] = request.seed + slot if request.seed else None
        if (seeds[slot] or 0) < 0:
            raise MessageError(f"the seed of slot {slot} is negative: {seeds[slot]}")
    return seeds


def slot_of(ns: str, position: int, num_envs: int) -> int:
    """Return the number of a slot: that of ``ns``, or the position if ``ns`` is empty."""
    if ns and not (ns.isascii() and ns.isdigit()):
        raise MessageError(f"ns {ns!r} is not the number of a slot")
    slot = int(ns) if ns else position
    if slot >= num_envs:
        raise MessageError(f"slot {slot} is out of range, expected a number below {num_envs}")
    return slot
