"""How fast Shoal's agents act and learn."""
