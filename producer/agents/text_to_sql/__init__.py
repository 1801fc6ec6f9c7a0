"""Questions about a database, answered by one query and judged by its rows."""
