"""The training loop: baseline, steps, evaluations, checkpoints."""
