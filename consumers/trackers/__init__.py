"""Mirrors trainings to wandb, tensorboard and mlflow, from the log alone."""
