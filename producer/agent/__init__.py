"""A rollout turn by turn: screen to prompt, answer to action, verdict at the end; many of them side by side."""
