"""Training on given answers: cross-entropy over masked tokens, or another objective, in batches."""
