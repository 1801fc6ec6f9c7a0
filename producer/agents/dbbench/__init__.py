"""DB Bench: sessions with a one-table database, judged by rows or by the table's state."""
