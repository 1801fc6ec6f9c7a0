"""A policy that acts a little: enough to differ between rollouts, made in 15 seconds."""

from pathlib import Path

import pytest
import torch

from producer.demo_policy.recipe import ImitationPhase, WarmUpRecipe
from producer.demo_policy.warm_up import ensure_demo_policy

BARELY_WARM = WarmUpRecipe(
    task_ids=("train_01_open_settings",),
    num_episodes=60,
    max_turns=3,
    alignment_steps=40,
    imitation_phases=(ImitationPhase(num_steps=25, episodes_per_batch=8, grounding_per_batch=4),),
)


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return ensure_demo_policy(tmp_path_factory.mktemp("policies"), lambda *_said: None, BARELY_WARM)
