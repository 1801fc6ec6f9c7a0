"""Data sets of SQL agents: their entries, how they are read, generated and judged. No torch."""
