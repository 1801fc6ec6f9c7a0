"""Fields of the configuration: batches and the policy's update."""

from typing import Literal

from pydantic import BaseModel, Field

from producer.config.numbers import BatchPart, NonNegativeFloat, NonNegativeInt, PositiveInt


class OptimisationFields(BaseModel):
    """Batches and the policy's update."""

    num_steps: NonNegativeInt = Field(100, description="Training steps in total.")
    groups_per_batch: BatchPart = Field(10, description="Groups per training step.")
    group_size: BatchPart = Field(
        4, description="Rollouts per group: attempts at the same task, compared with each other."
    )
    num_substeps: PositiveInt = Field(1, description="Optimiser steps per batch.")
    learning_rate: NonNegativeFloat = Field(1e-5, description="Learning rate of Adam.")
    loss_fn: Literal["importance_sampling", "ppo", "cispo"] = Field(
        "importance_sampling", description="Loss function of the policy update."
    )
    kl_penalty_coef: NonNegativeFloat = Field(
        0.0, description="Weight of the KL penalty against the policy without its adapter."
    )
    advantage_by_std: bool = Field(
        False, description="Divide advantages by the standard deviation of their group (+ 0.05)."
    )
