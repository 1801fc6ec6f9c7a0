"""The tables made again from the log.

To take the place of the live ones (`rebuild`), or to judge them (`verify`).
"""
