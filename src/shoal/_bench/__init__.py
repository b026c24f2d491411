"""Compare the speed of vectors in alternating rounds: ``shoal bench`` and ``benchmarks/``.

The modules that run in a contender's process (``server``, ``session``, ``workload``,
``contenders``) import at module level only the standard library, NumPy and Gymnasium >= 0.29,
because some contenders run where the rest of Shoal cannot be imported.

How it works: docs/internals/tools.md.
"""
