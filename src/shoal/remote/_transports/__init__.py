"""Transports: byte streams between two ends, behind one interface."""
