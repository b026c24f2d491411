"""What this machine is, and whether Shoal works on it; ``shoal doctor`` tells it.

    >>> from shoal.doctor import examine
    >>> examination = examine(seconds=0, backends=[])
    >>> examination.machine.cores.usable >= 1
    True

Facts are gathered (:mod:`~shoal.doctor._machine`, :mod:`~shoal.doctor._software`,
:mod:`~shoal.doctor._extras`), backends are tried (:mod:`~shoal.doctor._backend_checks`), and both
lead to the advice (:mod:`~shoal.doctor._advice`).
"""

from shoal.doctor._advice import Finding
from shoal.doctor._examination import Examination, examine

__all__ = ["Examination", "Finding", "examine"]
