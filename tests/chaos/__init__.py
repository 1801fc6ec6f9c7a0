"""Disturbs a whole installation and proves that nothing was lost or applied twice."""
