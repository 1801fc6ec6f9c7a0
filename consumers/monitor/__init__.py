"""The monitor: read-only pages over the tables, rendered on the server, without scripts."""
