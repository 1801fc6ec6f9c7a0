"""Agents that read the phone's true state: they solve tasks, and check that tasks are sound."""
