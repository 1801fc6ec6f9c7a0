"""DB Bench: a session with a database of one table, judged by its rows or by the table's state."""
