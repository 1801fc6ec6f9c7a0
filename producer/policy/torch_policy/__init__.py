"""A Learner on transformers and peft: everything that imports torch to sample or train."""
