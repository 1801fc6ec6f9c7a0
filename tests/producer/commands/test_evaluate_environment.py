"""`cua-train evaluate --environment`: a policy that no training made, in any environment."""

import json
from pathlib import Path

import pytest

from producer.config import without_unset
from producer.training.manual_evaluation import config_of_policy
from tests.support.cua_train import CuaTrain

ENTRIES = '{"source_type": "dbbench_generated", "num_samples": 22, "seed": 3, "limit": 2}'


def test_a_policy_is_evaluated_in_the_environment_that_is_named(cua_train: CuaTrain) -> None:
    done = cua_train(
        *("evaluate", "--model-name", "oracle", "--environment", "dbbench"),
        *("--eval-tasks", ENTRIES, "--episodes", "2", "--json"),
    )
    summary = json.loads(done.stdout)
    assert (summary["task_source"], summary["episodes"]) == ("dbbench_generated", 2)


def test_a_policy_without_default_tasks_is_evaluated_on_those_that_are_given(
    cua_train: CuaTrain, tmp_path: Path
) -> None:
    cua_train("sql", "data", "generate", "--output", str(tmp_path / "data"), "--seed", "1")
    tasks = {"source_type": "text_to_sql", "path": str(tmp_path / "data"), "split": "dev"}
    done = cua_train(
        *("evaluate", "--model-name", "oracle", "--environment", "text_to_sql"),
        *("--eval-tasks", json.dumps(tasks), "--episodes", "2", "--json"),
    )
    summary = json.loads(done.stdout)
    assert (summary["success"], summary["episodes"]) == (1.0, 2)


@pytest.mark.parametrize(
    ("model_name", "message"),
    [
        ("oracle", "environment text_to_sql has no default tasks"),
        ("some/policy", "'some/policy' has no default tasks in environment text_to_sql"),
    ],
)
def test_without_tasks_and_defaults_the_flag_that_takes_them_is_named(
    cua_train: CuaTrain, model_name: str, message: str
) -> None:
    refused = cua_train(
        *("evaluate", "--model-name", model_name, "--environment", "text_to_sql"), expected=2
    )
    message = f"error: eval_tasks: {message}"
    assert refused.stderr.startswith(f"{message}; give some, for example {{")


@pytest.mark.parametrize(
    ("environment", "source"),
    [
        *(("dbbench", "dbbench_generated"), ("miniwob", "miniwob"), ("desktop", "desktop")),
        *(("android", "demo_eval"), (None, "demo_eval")),
    ],
)
def test_a_policy_of_the_users_is_evaluated_on_the_environments_own_tasks(
    environment: str | None, source: str
) -> None:
    config = config_of_policy(without_unset({"model_name": "a/b", "environment": environment}))
    evaluated = config.tasks if config.eval_tasks is None else config.eval_tasks
    assert isinstance(evaluated, dict)
    assert evaluated["source_type"] == source


def test_a_number_of_thousands_of_digits_is_refused(cua_train: CuaTrain) -> None:
    tasks = f'{{"source_type": "demo_training", "limit": {"9" * 5000}}}'
    refused = cua_train("evaluate", "--model-name", "oracle", "--eval-tasks", tasks, expected=2)
    assert "--eval-tasks: a number has more than 4,300 digits" in refused.stderr


def test_a_training_keeps_its_environment(cua_train: CuaTrain) -> None:
    words = ("evaluate", "--training-name", "t", "--environment", "dbbench")
    refused = cua_train(*words, expected=2)
    assert "environment: a training is evaluated in its own environment; omit it" in refused.stderr
