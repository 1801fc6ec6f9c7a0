"""Agents that know the phone's true state: they solve tasks, demonstrate them and check that tasks are sound."""
