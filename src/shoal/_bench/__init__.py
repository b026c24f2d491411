"""Measuring vectors of environments against each other, in turn; ``shoal bench`` and more.

What runs in a contender's process (``server``, ``session``, ``workload``, ``contenders``) imports
at its top nothing but the standard library, NumPy and Gymnasium, from 0.29 on: some contenders run
where the rest of Shoal cannot be imported.

How it works: docs/internals/tools.md.
"""
