"""The random numbers of a game, drawn as ale-py draws them: the same seed, the same episode."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["StickyActions", "Words"]

_WORDS = 2**32


class Words:
    """The words of a Mersenne Twister, as C++'s ``std::mt19937`` gives them.

    >>> words = Words(5489)
    >>> words.next(), words.next()
    (3499211612, 581869302)
    """

    _BLOCK = 256

    def __init__(self, seed: int) -> None:
        self._twister = np.random.MT19937()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin anew; seeds of more than 32 bits are mixed into one that has 32."""
        if seed >= _WORDS:
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        np.random.RandomState(self._twister).seed(seed)
        self._drawn: list[int] = []

    def next(self) -> int:
        """The next word."""
        if not self._drawn:
            self._drawn = self._twister.random_raw(self._BLOCK).tolist()
            self._drawn.reverse()
        return self._drawn.pop()

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``, by the method of libstdc++ (Lemire's)."""
        product = self.next() * limit
        while product % _WORDS < _WORDS % limit:
            product = self.next() * limit
        return product // _WORDS

    @property
    def state(self) -> Any:
        """Where the sequence stands."""
        return self._twister.state, list(self._drawn)

    @state.setter
    def state(self, state: Any) -> None:
        self._twister.state, drawn = state
        self._drawn = list(drawn)


class StickyActions:
    """Decides, frame by frame, whether an action is taken or the last one is repeated.

    The emulator could do that itself, but then the state of its generator would be out of reach
    for a seed, for a reset from a cached state, and for saving.
    """

    def __init__(self, probability: float, seed: int) -> None:
        # As a float of 32 bits, which is what the emulator compares with.
        self._limit = float(np.float32(probability)) * _WORDS
        self.words = Words(seed)
        self.last = (0, 1.0)

    def begin(self) -> None:
        """Start an episode, in which no button was pressed yet."""
        self.last = (0, 1.0)

    def frame(self, action: int, strength: float) -> tuple[int, float]:
        """What is done in the next frame."""
        word = self.words.next()
        self.words.next()  # for the second player
        if word >= self._limit:
            self.last = action, strength
        return self.last
