"""Codecs: the formats in which families of policies write actions."""
