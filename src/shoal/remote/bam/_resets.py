"""How a RESET request names its slots and their seeds.

An empty list of actions means all slots; otherwise ``ns`` of each action names one. The request's
seed belongs to slot 0, and slot k takes the seed plus k, as Gymnasium's vectors seed their
environments. Since 0 means none there, and one number cannot tell seeds that do not count up, such
seeds travel in the actions: ``discrete_action`` of a named slot is its seed, or empty for none.
Gymnasium's seed 0 is therefore a seed like any other. A server that reads nothing but the request's
seed sees none in that case, and does what it does without.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.remote.bam._messages import GymAction, GymAPIRequest, MessageError

__all__ = ["read_reset", "reset_fields", "slot_of"]


def reset_fields(
    slots: Sequence[int], seeds: Sequence[int | None], num_envs: int
) -> tuple[int, list[GymAction]]:
    """The seed and the actions of a request that resets these slots.

    >>> reset_fields([0, 1], [42, 43], num_envs=2)
    (42, [])
    >>> reset_fields([1], [0], num_envs=2)
    (0, [GymAction(ns='1', discrete_action=[0], continuous_action=[])])
    """
    bases = {None if seed is None else seed - slot for slot, seed in zip(slots, seeds, strict=True)}
    base = bases.pop() if len(bases) == 1 else 0
    if base is None or base > 0:
        everything = list(slots) == list(range(num_envs))
        return base or 0, [] if everything else [GymAction(ns=str(slot)) for slot in slots]
    named = zip(slots, seeds, strict=True)
    return 0, [
        GymAction(ns=str(slot), discrete_action=[] if seed is None else [seed])
        for slot, seed in named
    ]


def read_reset(request: GymAPIRequest, num_envs: int) -> dict[int, int | None]:
    """The slots that a request resets, in its order, and the seed of each.

    Raises:
        MessageError: It names a slot that there is not, or one twice, or a seed that is none.
    """
    named = request.action or [GymAction(ns=str(slot)) for slot in range(num_envs)]
    found: dict[int, int | None] = {}
    for place, action in enumerate(named):
        slot = slot_of(action.ns, place, num_envs)
        if slot in found:
            raise MessageError(f"slot {slot} is named twice")
        if action.discrete_action:
            found[slot] = action.discrete_action[0]
        else:
            found[slot] = request.seed + slot if request.seed else None
        if (found[slot] or 0) < 0:
            raise MessageError(f"the seed of slot {slot} is negative: {found[slot]}")
    return found


def slot_of(ns: str, place: int, num_envs: int) -> int:
    """The slot that ``ns`` names; without a name it is the one at this place of the list."""
    if ns and not (ns.isascii() and ns.isdigit()):
        raise MessageError(f"ns {ns!r} is not the number of a slot")
    slot = int(ns) if ns else place
    if slot >= num_envs:
        raise MessageError(f"slot {slot} is out of range: there are {num_envs} slots")
    return slot
