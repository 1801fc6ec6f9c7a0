"""Dimensions of the smallest policy that sees screens."""

from producer.agents.android.policy.build import PolicySize

SIZE = PolicySize(
    text_dim=32,
    text_layers=2,
    text_heads=2,
    text_ffn=48,
    vision_dim=16,
    vision_layers=2,
    vision_heads=2,
    vision_ffn=24,
)
