"""Runs of training: the loop, and all that a run leaves in its folder."""
