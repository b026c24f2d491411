"""What this machine is, and whether Shoal works on it; ``shoal doctor`` tells it.

    >>> from shoal.doctor import examine
    >>> examination = examine(seconds=0, backends=[])
    >>> examination.machine.cores.usable >= 1
    True

Facts are gathered (:mod:`~shoal.doctor.machine`, :mod:`~shoal.doctor.software`,
:mod:`~shoal.doctor.extras`), backends are tried (:mod:`~shoal.doctor.trying`), and of both it
follows what to do (:mod:`~shoal.doctor.advice`).
"""

from shoal.doctor.advice import Finding
from shoal.doctor.examination import Examination, examine

__all__ = ["Examination", "Finding", "examine"]
