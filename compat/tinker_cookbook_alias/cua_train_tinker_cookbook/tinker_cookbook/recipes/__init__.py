"""`tinker_cookbook.recipes`."""
