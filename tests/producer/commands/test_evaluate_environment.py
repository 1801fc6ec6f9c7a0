"""`cua-train evaluate --environment`: a policy that no training made, in any environment."""

import json

from tests.support.cua_train import CuaTrain

ENTRIES = '{"source_type": "dbbench_generated", "num_samples": 22, "seed": 3, "limit": 2}'


def test_a_policy_is_evaluated_in_the_environment_that_is_named(cua_train: CuaTrain) -> None:
    done = cua_train(
        *("evaluate", "--model-name", "oracle", "--environment", "dbbench"),
        *("--eval-tasks", ENTRIES, "--episodes", "2", "--json"),
    )
    summary = json.loads(done.stdout)
    assert (summary["task_source"], summary["episodes"]) == ("dbbench_generated", 2)


def test_a_training_keeps_its_environment(cua_train: CuaTrain) -> None:
    words = ("evaluate", "--training-name", "t", "--environment", "dbbench")
    refused = cua_train(*words, expected=2)
    assert "environment: a training is evaluated in its own environment; omit it" in refused.stderr
