"""Rollouts: an episode, the engine that runs many of them at once, and the events that they state."""
