"""DB Bench: sessions with a database of one table (LifelongAgentBench)."""
