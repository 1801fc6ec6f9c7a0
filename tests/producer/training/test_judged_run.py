"""Runs whose tasks no device query judges, from the configuration to the log."""

import json

import pytest

from producer.errors import CuaTrainError, UnreachableError, UsageError
from producer.training.loaded import evaluation_tasks, load_run_tasks
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.base import Payload
from schemas.environment import EnvironmentFailed, EnvironmentTerminated
from schemas.installation import Installation
from schemas.rollout import RolloutFailed, RolloutFinished
from schemas.task import TaskStated, ValidatorStated
from schemas.validation import ValidationRecorded
from schemas.wire import read_envelope, read_payload
from tests.support.chat_server import ChatServer
from tests.support.reading import read_all
from tests.support.small_run import small

CUSTOM = {"source_type": "custom", "custom_tasks": ["Open the Settings app", "Turn it off"]}
OBJECT = {"source_type": "custom", "custom_tasks": [{"task_id": "a", "description": "Open it"}]}
SHORT = {"tasks": CUSTOM, "num_steps": 1, "skip_baseline": True, "max_turns": 4}


def payloads(installation: Installation) -> list[Payload]:
    if not installation.local_log_path.exists():
        return []
    records = read_all(installation)
    return [read_payload(read_envelope(record.value)) for record in records if record.value]


def test_the_agents_own_report_is_the_verdict_and_the_reward(installation: Installation) -> None:
    run(small(**SHORT, judge="agent"), installation=installation)
    recorded = payloads(installation)
    ends = [item for item in recorded if isinstance(item, RolloutFinished)]
    assert len(ends) == 2 * 3 + 4
    assert all(end.validation_passed is (end.agent_reported_success is True) for end in ends)
    assert {end.reward for end in ends} == {0.0, 1.0}
    verdicts = [item for item in recorded if isinstance(item, ValidationRecorded)]
    assert {verdict.actual_result for verdict in verdicts} <= {"success", "failure", ""}
    assert {(verdict.validation_query, verdict.expected_result) for verdict in verdicts} == {
        ("agent_report", "success")
    }
    stated = [item for item in recorded if isinstance(item, TaskStated)]
    assert {(item.validation_type, item.validation_query) for item in stated} == {("agent", None)}


def test_a_judge_of_ones_own_is_named_by_the_validator_and_its_verdicts(
    installation: Installation, server: ChatServer
) -> None:
    server.reply(json.dumps({"success": True, "reason": "open"}))
    run(small(**SHORT, judge=server.url, judge_model="m"), installation=installation)
    recorded = payloads(installation)
    validators = [item for item in recorded if isinstance(item, ValidatorStated)]
    assert {validator.validator_type for validator in validators} == {"model"}
    assert all(validator.config["judge"] == server.url for validator in validators)
    assert all(validator.config["model"] == "m" for validator in validators)
    verdicts = [item for item in recorded if isinstance(item, ValidationRecorded)]
    assert len(verdicts) == 10
    assert {verdict.validator_id for verdict in verdicts} == {
        validator.id for validator in validators
    }
    assert all(len(str(verdict.details["prompt_sha256"])) == 64 for verdict in verdicts)
    assert {item.reward for item in recorded if isinstance(item, RolloutFinished)} == {1.0}


def test_a_judge_that_stops_answering_fails_attempts_and_scores_none(
    installation: Installation, server: ChatServer
) -> None:
    server.reply_error(403, "no more credit")
    with pytest.raises(CuaTrainError):
        run(
            small(**SHORT, judge=server.url, failure_policy="retry", max_attempts=2),
            installation=installation,
        )
    recorded = payloads(installation)
    assert not [item for item in recorded if isinstance(item, RolloutFinished | ValidationRecorded)]
    failed = [item for item in recorded if isinstance(item, RolloutFailed)]
    assert len(failed) == 2 * 3 * 2
    assert {item.error_type for item in failed} == {"validator"}
    assert "HTTP 403: no more credit" in failed[0].error_message
    assert not [item for item in recorded if isinstance(item, EnvironmentFailed)]
    assert len([item for item in recorded if isinstance(item, EnvironmentTerminated)]) == len(
        failed
    )


def test_a_judge_that_cannot_be_reached_is_told_before_anything_is_recorded(
    installation: Installation,
) -> None:
    with pytest.raises(UnreachableError):
        run(small(**SHORT, judge="http://127.0.0.1:9/v1"), installation=installation)
    assert not payloads(installation)


def test_episodes_that_nobody_judges_count_in_no_success_rate(installation: Installation) -> None:
    nobody = {**CUSTOM, "judge": "none"}
    known = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}
    summary = run(
        small(tasks=known, eval_tasks=[known, nobody], num_steps=0, oracle_noise=0.0),
        installation=installation,
    )
    ends = [payload for payload in payloads(installation) if isinstance(payload, RolloutFinished)]
    assert [end.validation_passed for end in ends].count(None) == 2
    # Of four episodes two are on the task that has a validator, which the oracle solves.
    assert (summary.success_before, summary.episodes) == (1.0, 2)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"judge": "agent"}, "judge: 'agent' has nothing to judge"),
        ({"judge": "none"}, "judge: 'none' has nothing to judge"),
        ({"tasks": OBJECT}, r"tasks\.custom_tasks: these tasks have no validator"),
        ({"tasks": CUSTOM, "judge": "none"}, r"tasks\.custom_tasks: .*never judged"),
        ({"eval_tasks": OBJECT}, r"eval_tasks\.custom_tasks: these tasks have no validator"),
        (
            {"eval_tasks": CUSTOM, "judge": "none"},
            r"eval_tasks: none of these 2 tasks is judged",
        ),
        (
            {"tasks": CUSTOM, "judge": "http://h/v1", "ablate": "blank-screenshots"},
            "ablate: blank-screenshots blanks what the judge sees",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        load_run_tasks(small(**changes))


def test_a_judges_model_without_an_endpoint_is_refused() -> None:
    with pytest.raises(UsageError, match="judge_model: only with a judge that is the URL"):
        small(judge="agent", judge_model="m")


def test_an_evaluation_may_leave_the_trainings_judge_without_work(server: ChatServer) -> None:
    loaded = evaluation_tasks(small(judge=server.url), given=())
    assert loaded.ask_model is None


@pytest.mark.parametrize("judge", ["agent", "none", "http://h/v1"])
def test_a_judge_that_is_given_for_an_evaluation_has_something_to_judge(
    installation: Installation, judge: str
) -> None:
    run(small(num_steps=0, skip_baseline=True), installation=installation)
    for training_name, given in (("small", {}), (None, {"model_name": "oracle"})):
        with pytest.raises(UsageError, match=f"judge: '{judge}' has nothing to judge"):
            evaluate(
                {**given, "judge": judge}, training_name=training_name, installation=installation
            )


def test_a_model_that_no_task_is_left_to_is_refused() -> None:
    own = {**CUSTOM, "judge": "http://h/v1", "judge_model": "mine"}
    with pytest.raises(UsageError, match="has nothing to judge"):
        load_run_tasks(small(tasks=own, judge="http://h/v1", judge_model="other"))
