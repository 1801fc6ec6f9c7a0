"""Rewards of single steps of a text-to-SQL completion: its steps, scorers, and choices by score.

Imports no torch: a scorer reaches it as a callable.
"""
