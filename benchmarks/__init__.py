"""Measurements of Shoal's speed and of other libraries: ``python -m benchmarks --help``."""

from pathlib import Path

__all__ = ["ROOT"]

ROOT = Path(__file__).resolve().parents[1]
"""The root of the repository, from which ``python -m benchmarks`` runs."""
