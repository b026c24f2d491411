"""Random numbers of a game, drawn as ale-py draws them, so that seeds are compatible."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["StickyActions", "Words"]

_WORDS = 2**32


class Words:
    """The 32-bit outputs of a Mersenne Twister, equal to those of C++'s ``std::mt19937``.

    >>> words = Words(5489)
    >>> words.next(), words.next()
    (3499211612, 581869302)
    """

    _BLOCK = 256

    def __init__(self, seed: int) -> None:
        self._twister = np.random.MT19937()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Restart the sequence; a seed of more than 32 bits is hashed to 32 bits."""
        if seed >= _WORDS:
            seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        np.random.RandomState(self._twister).seed(seed)
        self._drawn: list[int] = []

    def next(self) -> int:
        """Return the next word."""
        if not self._drawn:
            self._drawn = self._twister.random_raw(self._BLOCK).tolist()
            self._drawn.reverse()
        return self._drawn.pop()

    def below(self, limit: int) -> int:
        """Return an integer below ``limit``, by Lemire's method as in libstdc++."""
        product = self.next() * limit
        while product % _WORDS < _WORDS % limit:
            product = self.next() * limit
        return product // _WORDS

    @property
    def state(self) -> Any:
        """The state of the generator."""
        return self._twister.state, list(self._drawn)

    @state.setter
    def state(self, state: Any) -> None:
        self._twister.state, drawn = state
        self._drawn = list(drawn)


class StickyActions:
    """Decides for each frame whether an action is executed or the previous one is repeated.

    The emulator also implements sticky actions, but its generator cannot be seeded without loading
    the game again, and its state is neither saved nor restored with a game.
    """

    def __init__(self, probability: float, seed: int) -> None:
        # The emulator compares with a float32.
        self._limit = float(np.float32(probability)) * _WORDS
        self.words = Words(seed)
        self.last = (0, 1.0)

    def begin(self) -> None:
        """Start an episode: the previous action is a no-op."""
        self.last = (0, 1.0)

    def frame(self, action: int, strength: float) -> tuple[int, float]:
        """Return the action and strength to execute in the next frame."""
        word = self.words.next()
        self.words.next()  # ale-py draws a word for the second player as well
        if word >= self._limit:
            self.last = action, strength
        return self.last
