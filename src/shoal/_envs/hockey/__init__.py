"""Laser hockey. :mod:`shoal.hockey` is the frontend to it.

How it works: docs/internals/hockey.md.
"""
