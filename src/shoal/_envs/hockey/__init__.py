"""Laser hockey. :mod:`shoal.hockey` is the frontend to it."""
