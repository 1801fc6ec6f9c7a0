"""The small text policy of the SQL agents: built from nothing and warmed up on gold answers."""
