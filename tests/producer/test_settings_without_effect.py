"""A setting that would do nothing is refused or named, whatever else is given."""

import logging
from typing import Any

import pytest

from producer.config import check_effects, fields_without_network, read_config
from producer.errors import NotFoundError, UsageError
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.installation import Installation
from tests.support.small_run import small

TASKS = {"source_type": "demo_training"}
WITHOUT_EFFECT: list[tuple[dict[str, Any], str]] = [
    ({"model_name": "demo", "oracle_noise": 0.5}, "oracle_noise"),
    ({"model_name": "a/b", "tasks": TASKS, "oracle_noise": 0.5}, "oracle_noise"),
    ({"model_name": "oracle", "ablate": "blank-screenshots"}, "ablate"),
    ({"failure_policy": "fail_fast", "max_attempts": 5}, "max_attempts"),
    ({"failure_policy": "min_viable_group", "max_attempts": 5}, "max_attempts"),
    ({"failure_policy": "fail_fast", "min_group_size": 1}, "min_group_size"),
    ({"model_name": "demo", "step_completions": 4}, "step_completions"),
]
WITH_EFFECT: list[dict[str, Any]] = [
    {"model_name": "oracle", "oracle_noise": 0.5},
    {"model_name": "demo", "ablate": "blank-screenshots"},
    {"model_name": "a/b", "tasks": TASKS, "environment": "text_to_sql", "step_completions": 4},
    {"failure_policy": "retry", "max_attempts": 5, "min_group_size": 1},
    {"failure_policy": "min_viable_group", "min_group_size": 1},
    # As a file that lists every field with its default.
    {"model_name": "demo", "oracle_noise": 0.3, "failure_policy": "fail_fast", "max_attempts": 3},
]


@pytest.mark.parametrize(("fields", "named"), WITHOUT_EFFECT)
def test_a_setting_that_would_do_nothing_is_refused_by_name(
    fields: dict[str, Any], named: str
) -> None:
    config = read_config(fields)
    with pytest.raises(UsageError, match=f"^{named}: has no effect"):
        check_effects(config, config.explicit)
    check_effects(config, config.explicit - {named})


@pytest.mark.parametrize("fields", WITH_EFFECT)
def test_a_setting_that_does_something_is_accepted(fields: dict[str, Any]) -> None:
    config = read_config(fields)
    check_effects(config, config.explicit)


def test_a_training_and_an_evaluation_refuse_it_before_anything_is_made(
    installation: Installation,
) -> None:
    with pytest.raises(UsageError, match="ablate: has no effect on the policy oracle"):
        run(small(ablate="blank-screenshots"), installation=installation)
    given = {"model_name": "oracle", "ablate": "blank-screenshots"}
    with pytest.raises(UsageError, match="ablate: has no effect on the policy oracle"):
        evaluate(given, training_name=None, installation=installation)
    assert not installation.local_log_path.exists()


def test_a_training_that_goes_on_is_asked_about_what_is_given_now(
    installation: Installation,
) -> None:
    # The policy is the recorded one, not the one that a command without --model-name would train.
    run(small(num_steps=0, oracle_noise=0.5), installation=installation)
    again = {"training_name": "small", "num_steps": 1, "oracle_noise": 0.5}
    assert run(read_config(again), installation=installation).steps == 1
    with pytest.raises(UsageError, match="max_attempts: 3 -> 5"):
        run(read_config({**again, "max_attempts": 5}), installation=installation)


def test_what_a_policy_without_a_network_does_not_read_is_named(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    config = small(num_steps=0, learning_rate=0.1, lora_rank=8, max_turns=3)
    assert fields_without_network(config, config.explicit) == ["learning_rate", "lora_rank"]
    demo = read_config({"learning_rate": 0.1})
    assert fields_without_network(demo, demo.explicit) == []
    with caplog.at_level(logging.WARNING):
        run(config, installation=installation)
    assert (
        "the policy oracle has no network: learning_rate, lora_rank have no effect" in caplog.text
    )


def test_an_evaluation_of_a_training_does_not_pretend_to_other_weights(
    installation: Installation,
) -> None:
    run(small(num_steps=0, skip_baseline=True), installation=installation)
    with pytest.raises(UsageError, match="leave these out: lora_rank: 32 -> 8"):
        evaluate({"lora_rank": 8}, training_name="small", installation=installation)
    given = {"lora_rank": 32, "eval_episodes": 1}
    assert evaluate(given, training_name="small", installation=installation).episodes == 1
    with pytest.raises(NotFoundError):
        evaluate(given, training_name="other", installation=installation)
