"""A timer whose signal handler raises an exception."""

import signal
from contextlib import contextmanager


class Alarm(Exception):
    """Raised by the signal handler when the time has passed."""


@contextmanager
def alarm_after(seconds):
    """Raise :class:`Alarm` in the main thread after this number of seconds."""

    def handle(*_):
        raise Alarm

    previous = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
