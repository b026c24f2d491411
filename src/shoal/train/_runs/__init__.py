"""Training runs: the training loop and the files in a run's folder."""
