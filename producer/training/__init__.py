"""The training loop: warm-up, baseline, steps, evaluations, checkpoints, and going on after a stop."""
