"""Contenders: the vectors that are compared with each other."""
