"""From the log into the tables, exactly once: read, fold, write rows and positions in one transaction."""
