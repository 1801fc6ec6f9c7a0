"""What is optimised, as pure functions of tensors and numbers: advantages, losses, KL estimators."""
