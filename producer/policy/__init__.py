"""Policies: the interfaces Policy and Learner, the scripted oracle, and the one that torch runs."""
