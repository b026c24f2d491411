"""The speed at which Shoal's agents act and learn."""
