"""Labels the steps of a completion by completing each prefix several times (Monte Carlo).

A step's label is the share of completions of the prefix ending with it that return the gold rows
(Math-Shepherd's soft label); the last step's label is whether the completion itself is right.
Sampling is passed in as a callable: this module knows no network.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from producer.environments.environment import Environment
from producer.environments.wrapper import unwrapped
from producer.policy.policy import Completion
from producer.process_rewards.cocte import split_steps, token_spans
from producer.process_rewards.row_sets import Comparison
from producer.process_rewards.sql_text import find_sql
from producer.rollouts.requests import StepScores
from producer.task import Task
from producer.validators.verdict import Verdict

SCORER = "monte_carlo"
CompletePrefix = Callable[[Task, str], Sequence[str]]
"""(task, prefix of the answer) -> whole answers. Deterministic; called by one thread."""
TokenStarts = Callable[[Sequence[int]], Sequence[int]]
"""Tokens of a completion -> index of each token's first character."""


@runtime_checkable
class ComparesRows(Environment, Protocol):
    """An environment whose questions are answered with SQL."""

    def compare(self, task: Task, sql: str | None) -> Comparison:
        """Compare the query's rows with the gold's. Raises EnvironmentFailedError."""


@dataclass(slots=True)
class StepLabeller:
    """Labels each prefix once per run. Thread-safe: completes one prefix at a time."""

    complete: CompletePrefix
    token_starts: TokenStarts
    _labels: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def label(self, environment: ComparesRows, task: Task, prefix: str) -> float:
        """Share of right completions of the prefix. Raises EnvironmentFailedError."""
        with self._lock:
            key = (task.task_id, prefix)
            if key not in self._labels:
                answers = self.complete(task, prefix)
                right = sum(_is_right(environment, task, answer) for answer in answers)
                self._labels[key] = right / len(answers)
            return self._labels[key]


def _is_right(environment: ComparesRows, task: Task, answer: str) -> bool:
    span = find_sql(answer)
    sql = None if span is None else answer[span.start : span.end]
    return environment.compare(task, sql).outcome == "correct"


def label_steps(
    labeller: StepLabeller,
    environment: Environment,
    task: Task,
    completion: Completion,
    verdict: Verdict | None,
) -> StepScores | None:
    """The labels of the completion's steps. Raises EnvironmentFailedError.

    None for a completion without SQL, or a question whose gold cannot be executed.
    """
    steps = split_steps(completion.text)
    compared_by = unwrapped(environment)
    assert isinstance(compared_by, ComparesRows)  # noqa: S101  # the configuration is checked
    if not steps or verdict is None or verdict.details.get("outcome") == "unknown":
        return None
    labels = [
        labeller.label(compared_by, task, completion.text[: following.start])
        for following in steps[1:]
    ]
    labels.append(float(verdict.success))
    tokens = () if completion.tokens is None else completion.tokens.completion_tokens
    spans = token_spans(steps, labeller.token_starts(tokens))
    texts = [step.text for step in steps]
    return StepScores.of(SCORER, zip(texts, spans, labels, strict=True), are_labels=True)
