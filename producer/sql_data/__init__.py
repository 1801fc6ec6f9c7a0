"""Data sets of agents that write SQL: generated from a seed, or read in their published layouts."""
