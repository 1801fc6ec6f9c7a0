"""RewardSQL's train_verl.py names its core_algos whatever the algorithm is."""

from pathlib import Path

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.commands.sql_rl_settings import settings_of
from producer.config import read_config
from tests.support.checkpoints import write_checkpoint


@pytest.mark.parametrize(
    ("algorithm", "advantage"), [("ppo", "gae"), ("prime", "prime"), ("remax", "remax")]
)
def test_the_published_core_algos_is_taken_with_every_algorithm(
    tmp_path: Path, algorithm: str, advantage: str
) -> None:
    questions = tmp_path / "questions"
    write_synthetic(questions, 0, SyntheticSize(1, 1, 1, ("count",)))
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
