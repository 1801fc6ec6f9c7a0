"""Rewards for the steps of a text-to-SQL completion: splitting, scoring, and choosing by score.

Imports no torch: scorers are passed in as callables.
"""
