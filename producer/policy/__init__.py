"""Policies: the Policy and Learner interfaces, the scripted oracle, and the torch policy."""
