"""A training on an OpenEnv server of somebody else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.text_policy.build import TextPolicySize, build_text_policy
from tests.support.cua_train import CuaTrain
from tests.support.env_servers import served_here
from tests.support.foreign_env import echo_app

SETTINGS = {
    "training_name": "echo",
    "environment": "openenv",
    "env_actions": "text",
    "num_steps": 2,
    "group_size": 2,
    "groups_per_batch": 1,
    "max_turns": 2,
    "max_tokens": 3,
    "lora_rank": 2,
    "skip_baseline": True,
    "eval_every": 0,
    "eval_episodes": 1,
    "remove_constant_reward_groups": False,
}


def test_two_steps_are_recorded_with_the_servers_words_and_verdicts(
    cua_train: CuaTrain,
    read_log: Callable[[], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUA_OPENENV_TOKEN", "very-secret")
    folder = tmp_path / "policy"
    size = TextPolicySize(dim=32, layers=1, heads=2, ffn=48)
    build_text_policy(folder, ["task seed win lose environment"], 0, size)
    (tmp_path / "c.json").write_text(json.dumps(SETTINGS))
    with served_here(echo_app()) as one, served_here(echo_app()) as other:
        server = ("--env-url", f"{one},{other}", "--model-name", str(folder))
        done = cua_train("run", "--config", str(tmp_path / "c.json"), "--no-monitor", *server)
    assert "completed after step 2" in done.stdout

    events = read_log()
    assert "very-secret" not in str(events)

    def of_type(kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in events if event["type"] == kind]

    (created,) = of_type("cua.training.created")
    assert created["config"]["env_url"] == f"{one},{other}"
    environments = of_type("cua.environment.requested")
    assert {item["env_type"] for item in environments} == {"openenv"}
    first = [turn for turn in of_type("cua.rollout.turn_taken") if turn["turn"] == 1]
    assert all(
        turn["text"].startswith("Do what the environment asks.\n\ntask any, seed ")
        for turn in first
    )
    verdicts = of_type("cua.validation.recorded")
    assert len(verdicts) == len(first) == 2 * 2 + 1
    assert {verdict["actual_result"] for verdict in verdicts} == {"0"}
