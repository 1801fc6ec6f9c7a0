"""Following the log by eye or by script: what to read, in which order, and how a record looks."""
