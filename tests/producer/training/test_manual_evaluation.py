"""`cua-train evaluate`: an evaluation by hand, whose facts are in the log too."""

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from producer.cli import cli
from producer.errors import NotFoundError, StopRequestedError, UsageError
from producer.resume.resume_state import Manifest, begin_state, commit_state, write_config
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from schemas.installation import Installation
from tests.support.invariants import accepted
from tests.support.reading import ReadLog
from tests.support.small_run import small


@pytest.fixture
def own_signals() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("training_name", ["small", None])
def test_an_evaluation_by_hand_is_a_stream_of_its_own_and_touches_no_training(
    installation: Installation, read_log: ReadLog, training_name: str | None
) -> None:
    run(small(num_steps=1), installation=installation)
    before = read_log()
    given = {} if training_name else {"model_name": "oracle"}
    summary = evaluate(
        {**given, "eval_episodes": 5}, training_name=training_name, installation=installation
    )
    assert (summary.episodes, 0.0 <= summary.success <= 1.0) == (5, True)
    added = [event for event in read_log() if event not in before]
    kinds = {event["subject"].partition("/")[0] for event in added}
    assert kinds == {"evaluation", "rollout", "environment"}
    assert sum(event["type"] == "cua.evaluation.finished" for event in added) == 1
    assert sum(event["type"] == "cua.evaluation.progressed" for event in added) > 0
    assert accepted(added)[1] == []


def test_an_evaluation_that_is_stopped_ends_its_groups_and_leaves_no_mark(
    installation: Installation, read_log: ReadLog
) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(StopRequestedError):
        evaluate(
            {"model_name": "oracle", "eval_episodes": 9},
            training_name=None,
            installation=installation,
            stop=stopped,
        )
    said = Counter(event["type"] for event in read_log())
    assert said["cua.group.created"] == said["cua.group.failed"] == 9
    assert said["cua.evaluation.cancelled"] == 1
    assert list(installation.open_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("objective", "use"),
    [
        ("sft", "`cua-train sql eval --model-name RESULT --data-path FOLDER`"),
        ("process_reward", "`cua-train sql best-of-n --reward-model RESULT ...`"),
        ("pairwise_reward", "its result RESULT scores answers; load it with transformers"),
    ],
)
def test_a_supervised_training_says_what_its_result_is_for(
    installation: Installation, objective: str, use: str
) -> None:
    folder = installation.runs_dir / "supervised"
    manifest = Manifest("supervised", 0, 1, 1, log_id="", log_start={}, since={})
    commit_state(begin_state(folder, 0, 1), manifest)
    write_config(folder, {"objective": objective, "output_dir": "RESULT"})
    with pytest.raises(UsageError, match=f"supervised and plays no episodes; .*{re.escape(use)}"):
        evaluate({}, training_name="supervised", installation=installation)


def test_a_training_that_was_never_trained_here_is_not_found(installation: Installation) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        evaluate({}, training_name="nobody", installation=installation)


@pytest.mark.usefixtures("own_signals")
def test_options_of_episodes_are_those_of_the_command_and_not_of_the_training(
    installation: Installation,
    read_log: ReadLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    run(small(num_steps=1, oracle_noise=0.0), installation=installation)
    before = len(read_log())
    options = ("--max-turns", "2", "--turn-cost", "0.25", "--max-task-time-seconds", "9")
    words = ("evaluate", "--training-name", "small", "--episodes", "2", *options)
    result = CliRunner().invoke(cli, [*words, "--no-validate-every-turn"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    added = read_log()[before:]
    planned = [item["data"] for item in added if item["type"] == "cua.rollout.created"]
    assert [item["max_turns"] for item in planned] == [2, 2]
    ended = [item["data"] for item in added if item["type"] == "cua.rollout.finished"]
    assert [item["reward"] for item in ended] == [
        item["task_success"] - 0.25 * item["num_turns"] for item in ended
    ]
    assert {item["turn_first_success"] for item in ended} == {None}
