"""Evaluation of a policy behind an OpenAI-compatible server; failures are never scored."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from producer.config import check_served, read_config
from producer.errors import CuaTrainError, UnreachableError, UsageError
from producer.policy.served import FORMATS
from producer.resume.resume_state import EvaluationSummary
from producer.training import manual_evaluation
from schemas.actions import Terminate
from schemas.installation import Installation
from tests.support.chat_server import ChatServer
from tests.support.reading import ReadLog, of_type

Evaluate = Callable[..., EvaluationSummary]
KEY = "sk-very-secret"
TASKS = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}


@pytest.fixture
def evaluate(installation: Installation, server: ChatServer) -> Evaluate:
    """Evaluates the server's policy with these settings."""

    def evaluated(**changes: Any) -> EvaluationSummary:
        given = {
            "base_url": server.url,
            "model_name": "my-policy",
            "eval_tasks": TASKS,
            "eval_episodes": 1,
            "max_turns": 3,
            "max_attempts": 1,
            "renderer_name": "compact",
            **changes,
        }
        return manual_evaluation.evaluate(given, training_name=None, installation=installation)

    return evaluated


@pytest.mark.parametrize("renderer", sorted(FORMATS))
def test_every_turn_is_a_request_and_its_answer_an_action(
    evaluate: Evaluate,
    read_log: ReadLog,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    renderer: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.reply(FORMATS[renderer].codec.encode(Terminate(status="success"), 360, 640))
    summary = evaluate(renderer_name=renderer, eval_episodes=3, max_tokens=9)
    assert (summary.episodes, summary.success) == (3, 0.0)
    events = read_log()
    turns = of_type(events, "rollout.turn_taken")
    assert [turn["actions"][0]["action"]["type"] for turn in turns] == ["terminate"] * 3
    assert {turn["tokens"] for turn in turns} == {None}
    request = server.requests[0]
    assert request.keys() == {"model", "messages", "temperature", "max_tokens", "seed"}
    assert (request["model"], request["max_tokens"]) == ("my-policy", 9)
    text, image = request["messages"][-1]["content"]
    assert "Settings" in text["text"]
    url = image["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/png;base64,"))[:4] == b"\x89PNG"
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert KEY not in json.dumps(events)


def test_a_request_contains_the_dialogue_so_far(evaluate: Evaluate, server: ChatServer) -> None:
    server.reply("home()")
    evaluate()
    roles = [[message["role"] for message in item["messages"]] for item in server.requests]
    assert roles == [
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert server.requests[2]["messages"][1]["content"] == "home()"


def test_a_failed_request_fails_the_attempt_and_another_attempt_is_made(
    evaluate: Evaluate, read_log: ReadLog, server: ChatServer
) -> None:
    server.reply_error(404, "no such model")
    server.reply("home()")
    assert evaluate(eval_episodes=2, max_attempts=2).episodes == 2
    (failed,) = of_type(read_log(), "rollout.failed")
    assert failed["error_type"] == "policy"
    assert "HTTP 404: no such model" in failed["error_message"]


def test_an_empty_answer_is_a_failure_and_no_action(
    evaluate: Evaluate, read_log: ReadLog, server: ChatServer
) -> None:
    server.reply(" \n")
    with pytest.raises(CuaTrainError):
        evaluate()
    (failed,) = of_type(read_log(), "rollout.failed")
    assert failed["error_message"].endswith("gave no completion: its answer is empty")


def test_a_server_that_only_fails_scores_nothing(
    evaluate: Evaluate, read_log: ReadLog, server: ChatServer
) -> None:
    server.reply_error(401, f"wrong key {KEY}")
    with pytest.raises(CuaTrainError):
        evaluate(eval_episodes=3)
    events = read_log()
    assert of_type(events, "rollout.finished") == []
    assert {event["error_type"] for event in of_type(events, "rollout.failed")} == {"policy"}


def test_a_server_that_is_away_or_serves_another_name_is_refused_before_the_first_event(
    evaluate: Evaluate, installation: Installation, server: ChatServer
) -> None:
    server.models = ["other"]
    with pytest.raises(UsageError, match=r"serves other, not 'my-policy'"):
        evaluate()
    with pytest.raises(UnreachableError, match=r"base_url: http://127\.0\.0\.1:9/v1 cannot be"):
        evaluate(base_url="http://127.0.0.1:9/v1")
    assert not installation.home.exists() or not list(installation.home.glob("log*"))


@pytest.mark.parametrize(
    ("models", "roots", "asked"),
    [
        (["short"], {"short": "my-policy"}, "short"),
        (["other", "my-policy"], {"other": "my-policy"}, "my-policy"),
        (None, {}, "my-policy"),
    ],
    ids=["by its root", "by its name first", "not listed"],
)
def test_requests_carry_the_name_that_the_server_lists(
    evaluate: Evaluate,
    server: ChatServer,
    models: list[str] | None,
    roots: dict[str, str],
    asked: str,
) -> None:
    server.models, server.roots = models, roots
    server.reply("home()")
    evaluate()
    assert {request["model"] for request in server.requests} == {asked}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "localhost:8000"}, "base_url: 'localhost:8000' is no URL"),
        ({"base_url": "http://u:p@host/v1"}, "base_url: the URL must not hold a user"),
        ({"model_name": "demo"}, "model_name: give the policy's name on the server"),
        ({"base_url": "http://a,http://b"}, "base_url: an evaluation takes one server"),
        ({"model_name": "oracle"}, "base_url: no server can sample the policy `oracle`"),
        ({"train_type": "full"}, "train_type: the servers of base_url take new weights as LoRA"),
        ({"adapters_dir": "/a"}, "adapters_dir: the server at base_url computes the policy"),
        ({"base_url": None, "adapters_dir": "/a"}, "adapters_dir: only with a base_url"),
        ({"device": "cuda"}, "device: the server at base_url computes the policy"),
        ({"base_url": None, "renderer_name": "openai"}, "renderer_name: openai needs a base_url"),
    ],
)
def test_what_a_served_policy_cannot_have_is_refused(changes: dict[str, Any], message: str) -> None:
    fields = {"base_url": "http://host:1", "model_name": "m", "tasks": TASKS, **changes}
    with pytest.raises(UsageError, match=message):
        check_served(read_config(fields))


def test_the_url_of_a_server_has_a_normal_form() -> None:
    config = read_config({"base_url": "http://host:1/v1/", "model_name": "m", "tasks": TASKS})
    assert config.base_url == "http://host:1/v1"
    several = read_config({"model_name": "m", "tasks": TASKS, "base_url": "http://a:1,http://b"})
    assert several.base_urls == ("http://a:1/v1", "http://b/v1")
