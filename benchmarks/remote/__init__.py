"""Vectors in another process, asked over a connection."""
