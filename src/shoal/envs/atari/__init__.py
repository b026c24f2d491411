"""Atari games, by ale-py's emulator. :mod:`shoal.atari` is the door to them."""
