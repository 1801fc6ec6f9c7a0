"""The monitor's JSON: the facts of its pages, valid against its own description."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from consumers.errors import UnreachableError
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from schemas.installation import read_installation
from tests.consumers.monitor.conftest import HOSTILE, Monitor, serve
from tests.support.sample_rows import at, named, step_row, training_row

pytestmark = pytest.mark.services

TRAINING = "/api/trainings/demo"
STEP = f"/api/steps/{named('step-1')}"
ROLLOUT = f"/api/rollouts/{named('rollout-1')}"


def strict(content: bytes) -> Any:
    """JSON as the standard has it: without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(content, parse_constant=refuse)


def answer(monitor: Monitor, path: str) -> Any:
    reply = monitor.get(path)
    assert reply.code == 200, reply.text
    return strict(reply.content)


def test_the_list_has_what_the_first_page_has(monitor: Monitor) -> None:
    rows = answer(monitor, "/api/trainings")["trainings"]
    assert [row["run_name"] for row in rows] == ["demo", "older", HOSTILE]
    demo = rows[0]
    assert demo["id"] == str(named("demo"))
    assert (demo["status"], demo["current_step"], demo["total_steps"]) == ("running", 2, 3)
    assert (demo["success_before"], demo["success_after"]) == (0.5, 1.0)
    assert demo["heartbeat_age_s"] == 15.0
    assert demo["last_heartbeat"] == "2026-11-21T12:00:20Z"
    assert rows[1]["parked_since"] == "2026-11-21T12:00:03Z"


def test_a_training_has_its_settings_evaluations_steps_and_history(monitor: Monitor) -> None:
    training = answer(monitor, TRAINING)
    assert (training["learning_rate"], training["group_size"], training["config"]) == (1e-3, 2, {})
    assert [(step["step"], step["generation"]) for step in training["steps"]] == [
        (1, 0),
        (2, 1),
        (3, 1),
    ], "a newer generation trained step 2 again"
    assert [
        (item["kind"], item["step"], item["success_rate"], item["standard_error"])
        for item in training["evaluations"]
    ] == [("baseline", 0, 0.5, 0.05), ("scheduled", 2, 1.0, 0.05)]
    assert [
        (gain["before"]["rate"], gain["after"]["rate"], gain["difference"])
        for gain in training["gains"]
    ] == [(0.5, 1.0, None)], "counts by task were not recorded"
    newest = training["status_history"][0]
    assert (newest["old_status"], newest["new_status"]) == ("initializing", "running")


def test_a_step_has_its_rollouts_by_group(monitor: Monitor) -> None:
    step = answer(monitor, STEP)
    assert (step["run_name"], step["loss"], step["num_rollouts"]) == ("demo", 0.25, 2)
    (group,) = step["groups"]
    assert (group["task_id"], group["reward_mean"]) == ("wifi", 0.5)
    assert [item["reward"] for item in group["rollouts"]] == [0.0, 1.0]


def test_a_rollout_has_its_turns_and_verdicts_by_either_id(monitor: Monitor) -> None:
    rollout = answer(monitor, ROLLOUT)
    assert answer(monitor, "/api/rollouts/rollout-1") == rollout
    assert rollout["task"]["description"] == "Turn Wi-Fi on."
    (turn,) = rollout["turns"]
    assert turn["turn_time_s"] == 1.0
    assert turn["actions"][0]["action"] == {"type": "click", "x": 31, "y": 52, "button": "left"}
    assert turn["observations"][0]["screenshot_uri"].startswith("blob:sha256:")
    assert [(item["rank"], item["success"]) for item in rollout["validations"]] == [
        (5, True),
        (0, False),
    ]


def test_what_a_policy_wrote_is_whole_and_no_page(monitor: Monitor) -> None:
    reply = monitor.get(ROLLOUT)
    assert strict(reply.content)["turns"][0]["model_response"] == HOSTILE
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert answer(monitor, f"/api/trainings/{quote(HOSTILE, safe='')}")["run_name"] == HOSTILE


def test_what_does_not_exist_is_404_with_an_error(monitor: Monitor) -> None:
    for path in (
        "/api/trainings/nobody",
        "/api/trainings/%00",
        f"/api/steps/{named('rollout-1')}",
        "/api/steps/1",
        "/api/rollouts/",
        "/api//",
        "/api/tasks",
    ):
        reply = monitor.get(path)
        assert (reply.code, list(strict(reply.content))) == (404, ["error"]), path


def test_the_roots_answer_is_the_description(monitor: Monitor) -> None:
    description = answer(monitor, "/api/openapi.json")
    assert answer(monitor, "/api") == answer(monitor, "/api/") == description


def test_every_answer_is_as_the_description_says(monitor: Monitor) -> None:
    description = answer(monitor, "/api/openapi.json")
    assert description["openapi"].startswith("3.1")
    for path, shape in (
        ("/api/trainings", "/api/trainings"),
        (TRAINING, "/api/trainings/{name}"),
        (STEP, "/api/steps/{id}"),
        (ROLLOUT, "/api/rollouts/{id}"),
    ):
        responses = description["paths"][shape]["get"]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        whole = {**schema, "components": description["components"]}
        Draft202012Validator(whole).validate(answer(monitor, path))
        name = schema["$ref"].rpartition("/")[2]
        properties = description["components"]["schemas"][name]["properties"]
        assert properties.keys() == answer(monitor, path).keys()


def test_numbers_that_json_lacks_are_texts(migrated_url: str, tmp_path: Path) -> None:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        session.add(training_row("odd", learning_rate=math.inf))
        session.add(step_row("odd-1", "odd", 1, loss=math.nan, kl_divergence=-math.inf))
        session.flush()
        document = json.dumps({"nested": [{"x": 10**400}]})[:-3] + '.5, "y": 10}]}'
        session.execute(text("UPDATE cua.training SET config_json = :it"), {"it": document})
        session.commit()
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    pages = Pages(lambda: engine, store, lambda: at(0))
    training = strict(pages.answer("/api/trainings/odd").content)
    engine.dispose()
    assert training["learning_rate"] == "Infinity"
    assert training["config"] == {"nested": [{"x": "Infinity", "y": 10}]}
    assert (training["steps"][0]["loss"], training["steps"][0]["kl_divergence"]) == (
        "NaN",
        "-Infinity",
    )


@pytest.fixture
def failing(monitor: Monitor) -> Iterator[Monitor]:
    def unreachable() -> None:
        message = "expected PostgreSQL, found nothing"
        raise UnreachableError(message)

    store = ScreenshotStore(read_installation({"CUA_HOME": str(monitor.home)}))
    pages = Pages(unreachable, store, lambda: at(0))  # type: ignore[arg-type]  # it never returns
    yield from serve(pages, monitor.home, monitor.engine)


def test_without_a_database_the_error_says_so(failing: Monitor) -> None:
    reply = failing.get("/api/trainings")
    assert reply.code == 503
    assert "expected PostgreSQL, found nothing" in strict(reply.content)["error"]


def test_only_reading_is_served(monitor: Monitor) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        refused = monitor.get(TRAINING, method=method)
        assert (refused.code, refused.headers["allow"]) == (405, "GET, HEAD")
        assert "use GET" in strict(refused.content)["error"]
    foreign = monitor.get(TRAINING, host="evil.example")
    assert (foreign.code, list(strict(foreign.content))) == (421, ["error"])
    unknown = monitor.get(TRAINING, method="PROPFIND")
    assert (unknown.code, list(strict(unknown.content))) == (501, ["error"])
