"""Fields of tinker-cookbook's streamed updates: accepted, with one warning, and without effect."""

from pathlib import Path
from typing import Any

import pytest

from producer.config import read_config, read_continued
from producer.training.preflight import log_unread_fields
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import installation_at
from tests.support.same_run import bits_of, differences
from tests.support.small_run import TINY, small

STREAMED = {"stream_minibatch": True, "num_minibatches": 2}
WARNINGS = [
    "num_minibatches is ignored: an update begins when all rollouts of its step are collected",
    "stream_minibatch is ignored: an update begins when all rollouts of its step are collected",
]


def test_a_training_with_streamed_minibatches_has_the_bits_of_one_without(
    installation: Installation, policy: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Any] = {**TINY, "model_name": policy, "num_steps": 2, "num_substeps": 2}
    without = installation_at(tmp_path / "without")
    run(small(**settings), installation=without)
    assert "is ignored" not in caplog.text
    run(small(**settings, **STREAMED), installation=installation)
    warned = [record.getMessage() for record in caplog.records if "is ignored" in record.message]
    assert warned == WARNINGS
    assert not differences(bits_of(without.home, "small"), bits_of(installation.home, "small"))


@pytest.mark.parametrize(
    "others",
    [
        {"advantage": "gae"},
        {"advantage": "reinforce", "baseline": "moving"},
        {"control": "wrong_sign"},
        {"kl_penalty_coef": 0.1},
        {"max_steps_off_policy": 1},
        {"ppo_epochs": 2},
        {"num_substeps": 10},
        {"rollouts_by": "workers", "base_url": "http://localhost:1/v1"},
    ],
)
def test_they_may_be_given_beside_any_other_setting(others: dict[str, Any]) -> None:
    given = {"model_name": "some/policy", "tasks": {"source_type": "demo_training"}}
    config = read_config({**given, **STREAMED, **others})
    assert (config.stream_minibatch, config.num_minibatches) == (True, 2)


def test_they_may_change_when_a_training_continues() -> None:
    recorded = small(**STREAMED).recorded()
    config = read_continued({"stream_minibatch": False}, recorded, overwrite=False)
    assert (config.stream_minibatch, config.num_minibatches) == (False, 2)


def test_a_training_that_was_begun_with_them_is_warned_when_it_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_unread_fields(read_continued({}, small(**STREAMED).recorded(), overwrite=False))
    assert [record.getMessage() for record in caplog.records] == WARNINGS
