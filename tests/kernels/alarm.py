"""An exception out of nowhere, such as a signal of the user's raises."""

import signal
from contextlib import contextmanager


class Alarm(Exception):
    """Raised when the time is over."""


@contextmanager
def ringing(seconds):
    """Let a signal raise :class:`Alarm` after so many seconds."""

    def ring(*_):
        raise Alarm

    previous = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
