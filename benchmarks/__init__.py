"""How fast Shoal steps environments, next to its peers: ``python -m benchmarks --help``."""
