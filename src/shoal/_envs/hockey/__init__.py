"""Laser hockey; :mod:`shoal.hockey` is the public module.

How it works: docs/internals/hockey.md.
"""
