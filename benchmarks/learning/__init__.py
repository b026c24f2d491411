"""How fast Shoal's agents act and learn: ``python -m benchmarks learning``."""
