"""Laser hockey. :mod:`shoal.hockey` is the door to it."""
