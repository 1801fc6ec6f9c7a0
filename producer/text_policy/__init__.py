"""The small text policy of the SQL agents, built from scratch and warmed up on gold answers."""
