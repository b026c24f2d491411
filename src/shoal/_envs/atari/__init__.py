"""Atari games, by ale-py's emulator. :mod:`shoal.atari` is the frontend to them."""
