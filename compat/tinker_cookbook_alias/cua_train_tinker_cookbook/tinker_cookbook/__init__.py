"""`tinker_cookbook`, of cua-train's alias package; the real one is not installed."""
