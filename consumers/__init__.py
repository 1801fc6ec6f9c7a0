"""Everything that reads the log: projectors, tables, rebuild, verify, tail, queries, monitor.

Knows no torch.
"""
