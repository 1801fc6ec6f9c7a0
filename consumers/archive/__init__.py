"""Copies of the log in Parquet files: what retention deletes from the log is kept here.

`write` makes and extends an archive, `reader` reads an archive and the log behind it as one log.
"""
