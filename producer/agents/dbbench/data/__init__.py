"""DB Bench: sessions with a one-table database (LifelongAgentBench)."""
