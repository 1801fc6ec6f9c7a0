"""Codecs: the formats in which model families write actions."""
