"""From the log into the tables, exactly once: rows and positions change in one transaction."""
