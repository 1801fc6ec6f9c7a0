"""Continuing a training: what its log and its saved states say, and how a dead process's streams are ended."""
