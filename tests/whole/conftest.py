"""A database and an environment of each test's own; a policy that acts a little, in 15 seconds."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from producer.agents.android.policy.recipe import ImitationPhase, WarmUpRecipe
from tests.support.postgres import PostgresServer
from tests.support.warmed_policies import phone_policy

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
    return phone_policy(tmp_path_factory.mktemp("policies"), BARELY_WARM)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    name = postgres.create()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
def environ(tmp_path: Path, database: str) -> dict[str, str]:
    return {
        **os.environ,
        "CUA_HOME": str(tmp_path / "home"),
        "CUA_TOPIC_PREFIX": f"{tmp_path.name}.",
        "DATABASE_URL": database,
        # Of a network this small; several wait for each other on a busy machine (open_policy.py).
        "OMP_NUM_THREADS": "1",
    }
