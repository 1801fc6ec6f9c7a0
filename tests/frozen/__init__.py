"""Short runs whose events, tables and weights must not move when code is rearranged."""
