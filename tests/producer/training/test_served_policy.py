"""Evaluation of a policy behind an OpenAI-compatible server; failures are never scored."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from producer.config import read_config
from producer.errors import CuaTrainError, UnreachableError, UsageError
from producer.policy.served import FORMATS
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.actions import Terminate
from schemas.installation import Installation
from tests.support.judge_server import JudgeServer, judge_server
from tests.support.small_run import small

ReadLog = Callable[[], list[dict[str, Any]]]
KEY = "sk-very-secret"
TASKS = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as script:
        yield script


def given(server: JudgeServer, **changes: Any) -> dict[str, Any]:
    return {
        "base_url": server.url,
        "model_name": "my-policy",
        "eval_tasks": TASKS,
        "eval_episodes": 3,
        "max_turns": 3,
        "max_attempts": 1,
        **changes,
    }


def of_type(events: list[dict[str, Any]], type_: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == type_]


@pytest.mark.parametrize("renderer", sorted(FORMATS))
def test_a_server_is_asked_turn_by_turn_and_its_words_become_actions(
    installation: Installation,
    read_log: ReadLog,
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    renderer: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.reply(FORMATS[renderer].codec.encode(Terminate(status="success"), 360, 640))
    summary = evaluate(
        given(server, renderer_name=renderer), training_name=None, installation=installation
    )
    assert (summary.episodes, summary.success) == (3, 0.0)
    events = read_log()
    turns = of_type(events, "cua.rollout.turn_taken")
    assert [turn["actions"][0]["action"]["type"] for turn in turns] == ["terminate"] * 3
    assert {turn["tokens"] for turn in turns} == {None}
    asked = server.requests[0]
    assert asked["model"] == "my-policy"
    shown = asked["messages"][-1]["content"]
    assert "Settings" in shown[0]["text"]
    image = shown[1]["image_url"]["url"]
    assert base64.b64decode(image.removeprefix("data:image/png;base64,"))[:4] == b"\x89PNG"
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert KEY not in json.dumps(events)


def test_a_dialogue_shows_the_turns_before(installation: Installation, server: JudgeServer) -> None:
    server.reply("home()")
    evaluate(
        given(server, eval_episodes=1, renderer_name="compact"),
        training_name=None,
        installation=installation,
    )
    roles = [[message["role"] for message in item["messages"]] for item in server.requests]
    assert roles == [
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert server.requests[2]["messages"][1]["content"] == "home()"


def test_a_request_that_fails_is_a_failed_attempt_and_another_is_made(
    installation: Installation, read_log: ReadLog, server: JudgeServer
) -> None:
    server.reply_error(404, "no such model")
    server.reply("home()")
    settings = given(server, eval_episodes=2, renderer_name="compact", max_attempts=2)
    summary = evaluate(settings, training_name=None, installation=installation)
    assert summary.episodes == 2
    failed = of_type(read_log(), "cua.rollout.failed")
    assert [item["error_type"] for item in failed] == ["policy"]
    assert "HTTP 404: no such model" in failed[0]["error_message"]


def test_a_server_that_answers_nothing_scores_nothing(
    installation: Installation, read_log: ReadLog, server: JudgeServer
) -> None:
    server.reply_error(401, f"wrong key {KEY}")
    with pytest.raises(CuaTrainError):
        evaluate(
            given(server, renderer_name="compact"), training_name=None, installation=installation
        )
    assert of_type(read_log(), "cua.rollout.finished") == []
    assert {event["error_type"] for event in of_type(read_log(), "cua.rollout.failed")} == {
        "policy"
    }


def test_a_busy_server_is_asked_again_and_refused_fields_are_left_out(
    installation: Installation, server: JudgeServer
) -> None:
    server.reply_error(429, "slow down", retry_after="0.01")
    server.reply_error(400, "temperature and seed are not supported; max_tokens: use another")
    server.reply("home()")
    settings = given(server, eval_episodes=1, max_turns=1, renderer_name="compact", max_tokens=9)
    assert evaluate(settings, training_name=None, installation=installation).episodes == 1
    assert {"temperature", "seed", "max_tokens"} <= server.requests[1].keys()
    assert server.requests[2].keys() == {"model", "messages", "max_completion_tokens"}
    assert server.requests[2]["max_completion_tokens"] == 9


def test_a_server_that_is_away_or_serves_another_name_is_refused_before_the_first_event(
    installation: Installation, server: JudgeServer
) -> None:
    server.models = ["other"]
    with pytest.raises(UsageError, match=r"serves other, and not 'my-policy'"):
        evaluate(given(server), training_name=None, installation=installation)
    with pytest.raises(UnreachableError, match=r"base_url: http://127\.0\.0\.1:9/v1 cannot be"):
        evaluate(
            given(server, base_url="http://127.0.0.1:9/v1"),
            training_name=None,
            installation=installation,
        )
    assert not installation.home.exists() or not list(installation.home.glob("log*"))


def test_a_run_does_not_train_a_served_policy(
    installation: Installation, server: JudgeServer
) -> None:
    config = small(model_name="my-policy", base_url=server.url, tasks=TASKS, num_steps=1)
    with pytest.raises(UsageError, match="can be evaluated, not trained; use cua-train evaluate"):
        run(config, installation=installation)
    assert server.requests == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "localhost:8000"}, "base_url: 'localhost:8000' is no URL"),
        ({"base_url": "http://u:p@host/v1"}, "base_url: the URL must not hold a user"),
        ({"model_name": "demo"}, "model_name: give the name that the server"),
        ({"device": "cuda"}, "device: the policy is computed by the server"),
    ],
)
def test_what_a_served_policy_cannot_have_is_refused(changes: dict[str, Any], message: str) -> None:
    fields = {"base_url": "http://host:1", "model_name": "m", "tasks": TASKS, **changes}
    with pytest.raises(UsageError, match=message):
        read_config(fields)
    with pytest.raises(UsageError, match="renderer_name: openai needs a base_url"):
        read_config({"renderer_name": "openai"})
    config = read_config({"base_url": "http://host:1/v1/", "model_name": "m", "tasks": TASKS})
    assert config.base_url == "http://host:1/v1"
