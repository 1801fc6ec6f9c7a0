"""Policies that act and learn: the network in this process, and a scripted one without torch."""
