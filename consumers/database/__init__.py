"""The PostgreSQL that holds the tables: URL, connections, migrations and the projector's lease."""
