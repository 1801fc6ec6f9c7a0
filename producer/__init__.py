"""Everything that emits: trainer, environments, tasks, policy. Knows the log and nothing of the tables."""
