"""Agents that know the phone's true state.

They solve tasks, demonstrate them and check that tasks are sound.
"""
