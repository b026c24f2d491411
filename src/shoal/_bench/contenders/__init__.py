"""Ways to step many environments that are measured against each other."""
