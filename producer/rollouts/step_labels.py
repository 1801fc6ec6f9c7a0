"""Labels the steps of a completion by completing each prefix several times (Monte Carlo).

A step's label is the share of completions of the prefix that ends with it whose rows are the gold's
(Math-Shepherd's soft label); the last step's is whether the completion itself is right. Sampling
reaches this module as a callable: it knows no network.
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
"""(task, what the answer begins with) -> whole answers. Deterministic; called by one thread."""
TokenStarts = Callable[[Sequence[int]], Sequence[int]]
"""Tokens of a completion -> for each the index of its first character."""


@runtime_checkable
class ComparesRows(Environment, Protocol):
    """An environment of questions that are answered with SQL."""

    def compare(self, task: Task, sql: str | None) -> Comparison:
        """The query's rows compared with the gold's. EnvironmentFailedError."""


@dataclass(slots=True)
class StepLabeller:
    """Labels prefixes, each once in a run. Thread-safe: one prefix is completed at a time."""

    complete: CompletePrefix
    token_starts: TokenStarts
    _labels: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def label(self, environment: ComparesRows, task: Task, prefix: str) -> float:
        """Share of right completions of the prefix. EnvironmentFailedError."""
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
    """The labels of the completion's steps. EnvironmentFailedError.

    None for a completion without SQL, and for a question whose gold cannot be executed.
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
