"""Transports: what carries the bytes of a session, all behind one interface."""
