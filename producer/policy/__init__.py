"""Policies: the interfaces Policy and Learner, the scripted oracle, and the one on torch."""
