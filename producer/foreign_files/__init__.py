"""Configuration files of other projects, read as they are.

A module for each format: a table of its fields (`rows`), and what follows from several fields
together. `reading` reads a file by a table.
"""
