"""Supervised trainings: fine-tuning, process rewards, pairwise rewards."""
