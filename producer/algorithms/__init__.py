"""What is optimised, as pure functions of tensors and numbers.

Advantages, losses, KL estimators.
"""
