"""Modules of the recipe's later layout."""
