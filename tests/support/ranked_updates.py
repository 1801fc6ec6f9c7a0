"""Updates by one process and by those of torchrun: `-m tests.support.ranked_updates FOLDER`.

Rank 0 prints a list of [alone, together] with the figures and the size of the adapter's weights
after two updates with each of `SETTINGS`.
"""

import json
import os
import sys
from typing import Any
from uuid import UUID

from safetensors.torch import load

from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import PolicySettings
from producer.policy.learner import Trajectory
from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy import ranks
from producer.policy.torch_policy.follow import follow
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.open import open_in_process
from producer.policy.torch_policy.screen_encoder import blank_screenshot
from producer.task import Task
from tests.support.update_settings import NO_OUTCOME

KL = {"kl_penalty_coef": 0.1}
SETTINGS: list[dict[str, Any]] = [
    {"loss_fn": "ppo", "ppo_epochs": 2, "entropy_coef": 0.1},
    {"loss_aggregation": "sequence_mean", **KL, "kl_estimator": "k3", "kl_in": "loss"},
    {**KL, "compute_post_kl": True},
    {"loss_fn": "gspo", "loss_aggregation": "sequence_mean", "max_gradient_norm": 0.5},
]
TASK = Task("t", "t", "Open the settings", None, None, 1, None, None)


def trajectories(policy: InProcessPolicy) -> list[Trajectory]:
    """Nine of one turn each, of different lengths; one is measured and not trained on."""
    shot = blank_screenshot((64, 64))
    requests = [
        SampleRequest(UUID(int=row), TASK, (), shot, 1.0, 3 + row, seed=row) for row in range(9)
    ]
    return [
        Trajectory(TASK, (Turn(shot, completion),), row / 4 - 1, NO_OUTCOME, is_trained=row != 4)
        for row, completion in enumerate(policy.sample(requests))
    ]


def updated(folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    policy = open_in_process(PolicySettings(folder, lora_rank=2, screen_px=(64, 64)))
    batch = trajectories(policy)
    given = UpdateSettings(learning_rate=0.01, seed=0, num_substeps=2, **settings)
    policy.update(batch, given)
    result = policy.update(batch, given)
    found = {
        "loss": result.loss,
        "kl": result.kl_sample_train_v1,
        "post": result.kl_pre_post_v1,
        "base": result.kl_policy_base,
        "entropy": result.entropy,
        "norm": result.gradient_norm,
        "tokens": result.num_tokens,
        "measured": result.num_measured_tokens,
    }
    weights = load(ranks.state_of(policy).files["adapter.safetensors"])
    size = sum(float(tensor.abs().sum()) for tensor in weights.values())
    return {**found, "version": policy.version, "size": size}


if __name__ == "__main__":
    is_first = os.environ["RANK"] == "0"
    alone = [updated(sys.argv[1], settings) for settings in SETTINGS] if is_first else []
    ranks.join(0)
    if is_first:
        together = [updated(sys.argv[1], settings) for settings in SETTINGS]
        sys.stdout.write(json.dumps(list(zip(alone, together, strict=True))) + "\n")
    else:
        follow()
    ranks.leave()
