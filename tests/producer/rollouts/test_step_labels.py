"""Labels of a completion's steps by Monte-Carlo completion of their prefixes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.agents.text_to_sql.data.databases import DataFolder, find_database
from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.agents.text_to_sql.data.sound_questions import load_text_to_sql
from producer.agents.text_to_sql.environment import TextToSqlEnvironment
from producer.environments.wrapper import EnvironmentWrapper
from producer.policy.policy import Completion, SampledTokens
from producer.rollouts.events import steps_scored
from producer.rollouts.step_labels import StepLabeller, label_steps
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.completion import CompletionStepsScored

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = ("WITH a AS (SELECT 'no' AS one),", "b AS (SELECT one FROM a)", "SELECT one FROM b")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    size = SyntheticSize(1, 1, 1, templates=("count",))
    write_synthetic(folder, 0, size)
    return folder


@pytest.fixture
def task(data: Path) -> Task:
    return load_text_to_sql(data, "train", "tasks")[0]


class Completer:
    """Answers with these queries, and remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.prefixes: list[str] = []

    def __call__(self, _task: Task, prefix: str) -> Sequence[str]:
        self.prefixes.append(prefix)
        return self.answers


def labelled(
    data: Path, task: Task, completer: Completer, text: str, labeller: StepLabeller | None = None
) -> tuple[Verdict, CompletionStepsScored | None]:
    environment = TextToSqlEnvironment(
        lambda entry: find_database(
            [DataFolder(data, "train")], entry.database or "", entry.database_sha256
        )
    )
    # A token for every character.
    labeller = labeller or StepLabeller(completer, lambda tokens: list(range(len(tokens))))
    environment.open(task, 0)
    taken = TextToSqlCodec().parse(text, 0, 0)
    verdict = environment.judge(task, Evidence((), taken, 1))
    tokens = SampledTokens(None, (), 0, tuple(range(len(text))), (0.0,) * len(text), "stop")
    completion = Completion(text, taken, tokens)
    scores = label_steps(labeller, EnvironmentWrapper(environment), task, completion, verdict)
    return verdict, None if scores is None else steps_scored(scores, NOW)


def gold(task: Task) -> str:
    assert task.entry is not None
    assert task.entry.sql is not None
    return task.entry.sql


def test_a_label_is_the_share_of_right_completions_of_the_prefix(data: Path, task: Task) -> None:
    completer = Completer(gold(task), "SELECT 'other'", gold(task), "nonsense")
    text = "\n\n".join(STEPS)
    verdict, scored = labelled(data, task, completer, text)
    assert scored is not None
    assert not verdict.success
    assert completer.prefixes == [f"{STEPS[0]}\n\n", f"{STEPS[0]}\n\n{STEPS[1]}\n\n"]
    # Two of four completions of either prefix are right; the whole completion is wrong.
    assert [step.label for step in scored.steps] == [0.5, 0.5, 0.0]
    assert [step.text for step in scored.steps] == list(STEPS)
    assert scored.scorer == "monte_carlo"
    assert (scored.product, scored.minimum, scored.last) == (0.0, 0.0, 0.0)
    assert scored.average == pytest.approx(1 / 3)
    # The steps' tokens make up the completion; what stands between two belongs to the first.
    first, second = len(STEPS[0]) + 2, len(STEPS[0]) + len(STEPS[1]) + 4
    assert [(step.first_token, step.last_token) for step in scored.steps] == [
        (0, first),
        (first, second),
        (second, len(text)),
    ]


def test_the_last_step_is_right_when_the_completion_is(data: Path, task: Task) -> None:
    verdict, scored = labelled(data, task, Completer("x"), f"```sql\n{gold(task)}\n```")
    assert scored is not None
    assert verdict.success
    assert [step.label for step in scored.steps] == [1.0]


def test_a_prefix_is_completed_once_in_a_run(data: Path, task: Task) -> None:
    completer = Completer(gold(task))
    labeller = StepLabeller(completer, lambda tokens: list(range(len(tokens))))
    for last in ("SELECT one FROM b", "SELECT 'never' FROM b"):
        _, scored = labelled(data, task, completer, "\n\n".join([*STEPS[:2], last]), labeller)
        assert scored is not None
        assert [step.label for step in scored.steps] == [1.0, 1.0, 0.0]
    assert len(completer.prefixes) == 2


def test_a_completion_without_sql_has_no_labels(data: Path, task: Task) -> None:
    completer = Completer(gold(task))
    assert labelled(data, task, completer, "I do not know")[1] is None
    assert completer.prefixes == []
