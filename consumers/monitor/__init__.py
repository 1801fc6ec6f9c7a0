"""The monitor: pages over the tables, rendered on the server, for one machine's own user.

Writes nothing and loads no script.
"""
