"""Rollouts: the episode, the engine that runs many at once, and the events they emit."""
