"""From the log into the tables, exactly once.

Read, fold, write rows and positions in one transaction.
"""
