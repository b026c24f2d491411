"""How fast Shoal steps environments, next to its peers: ``python -m benchmarks --help``."""

from pathlib import Path

__all__ = ["ROOT"]

ROOT = Path(__file__).resolve().parents[1]
"""The repository, where ``python -m benchmarks`` finds itself."""
