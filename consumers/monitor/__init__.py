"""The monitor: read-only pages over the tables without scripts, and the same facts as JSON."""
