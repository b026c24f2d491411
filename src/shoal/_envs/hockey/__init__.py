"""Laser hockey; :mod:`shoal.hockey` is the public module."""
