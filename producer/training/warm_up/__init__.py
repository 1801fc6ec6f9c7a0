"""The default policy, built and warmed once per home, so that RL begins with something to improve.

Two stages, because together they take three times as long: first the vision tower learns what stands where (`seeing`), then, with it
frozen and every screen encoded once, the language model learns to point and to act (`acting`). Knows neither log nor command line.
"""

from producer.training.warm_up.make import WarmUpRecipe, ensure_demo_policy

__all__ = ["WarmUpRecipe", "ensure_demo_policy"]
