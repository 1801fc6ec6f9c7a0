"""A Learner on transformers and peft.

Everything that imports torch for sampling and training is in here.
"""
