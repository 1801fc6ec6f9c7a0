"""Reads configuration files of other projects, unchanged.

Each format has a module with a table of its fields (`rows`) and with the settings that depend on
several fields. `reading` reads a file by such a table.
"""
