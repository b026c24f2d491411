"""Diagnostics for this machine and the installation of Shoal; also ``shoal doctor``.

    >>> from shoal.doctor import examine
    >>> examination = examine(seconds=0, backends=[])
    >>> examination.machine.cores.usable >= 1
    True

``_machine``, ``_software`` and ``_extras`` gather facts, ``_backend_checks`` runs every backend,
and ``_advice`` derives findings from both.

How it works: docs/internals/tools.md.
"""

from shoal.doctor._advice import Finding
from shoal.doctor._examination import Examination, examine

__all__ = ["Examination", "Finding", "examine"]
