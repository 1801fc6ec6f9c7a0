"""Advantages, losses and KL estimators, as pure functions of tensors and numbers."""
