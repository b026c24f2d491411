"""Mutated messages, and the memory for decoding them."""

import struct
import tracemalloc
from contextlib import suppress

from hypothesis import HealthCheck, settings

from shoal.errors import ProtocolError

MAX_MEMORY = 64 << 20
"""Largest memory in bytes for decoding a small input."""

MAX_REJECT_MEMORY = 8 << 20
"""Largest memory in bytes for rejecting an input, whatever its header says."""


FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def peak_of(function):
    """Return the peak memory of a function, which may raise ProtocolError."""
    tracemalloc.start()
    try:
        with suppress(ProtocolError):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def mutated(rng, data):
    """Change, remove, or insert some bytes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if data:
                data[at % len(data)] = rng.randrange(256)
            case 1 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 2:
                del data[at:]
            case 3:
                del data[at : at + rng.randrange(1, 9)]
            case 4:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                data[at : at + 8] = struct.pack("<Q", rng.choice([0, 1, 2**31, 2**63, 2**64 - 1]))
    return bytes(data)
