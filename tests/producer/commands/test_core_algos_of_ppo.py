"""RewardSQL's train_verl.py names its core_algos whatever the algorithm is."""

from pathlib import Path

import pytest

from producer.commands.sql_rl_settings import settings_of
from producer.config import read_config
from tests.support.checkpoints import write_checkpoint
from tests.support.cua_train import CuaTrain


@pytest.mark.parametrize(
    ("algorithm", "advantage"), [("ppo", "gae"), ("prime", "prime"), ("remax", "remax")]
)
def test_the_published_core_algos_is_taken_with_every_algorithm(
    tmp_path: Path, cua_train: CuaTrain, algorithm: str, advantage: str
) -> None:
    questions = tmp_path / "questions"
    cua_train("sql", "data", "generate", "--seed", "0", "--output", str(questions))
    policy = tmp_path / "policy"
    policy.mkdir()
    write_checkpoint(policy, "qwen2")
    given = settings_of(
        {
            "model_name": str(policy),
            "data_path": str(questions),
            "algorithm": algorithm,
            "core_algos": "examples.RewardSQL.verl.core_algos",
        }
    )
    assert "core_algos" not in given
    assert read_config(given).advantage == advantage
