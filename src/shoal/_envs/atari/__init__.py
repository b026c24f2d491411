"""Atari games, by ale-py's emulator. :mod:`shoal.atari` is the frontend to them.

How it works: docs/internals/atari.md.
"""
