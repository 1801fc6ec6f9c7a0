"""The embedded PostgreSQL of one machine: its binaries, its cluster, the process that keeps it."""
