"""Training on given answers in batches: cross-entropy over masked tokens, or another objective."""
