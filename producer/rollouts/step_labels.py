"""Labels the steps of a completion by completing each prefix several times (Monte Carlo).

A step's label is the share of completions of the prefix that ends with it whose rows are the gold's
(Math-Shepherd's soft label); the last step's is whether the completion itself is right. Sampling
reaches this module as a callable: it knows no network.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, runtime_checkable
from uuid import UUID

from producer.environments.environment import Environment
from producer.environments.wrapper import EnvironmentWrapper
from producer.process_rewards.cocte import split_steps
from producer.process_rewards.row_sets import Comparison
from producer.process_rewards.sql_text import find_sql
from producer.process_rewards.token_spans import token_spans
from producer.rollouts.events import steps_scored
from producer.rollouts.requests import StepScores
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.base import Payload
from schemas.completion import StepScore

SCORER = "monte_carlo"
CompletePrefix = Callable[[Task, str], Sequence[str]]
"""(task, what the answer begins with) -> whole answers. Deterministic; called by one thread."""
TokenStarts = Callable[[Sequence[int]], Sequence[int]]
"""Tokens of a completion -> for each the index of its first character."""


@runtime_checkable
class ComparesRows(Environment, Protocol):
    """An environment of questions that are answered with SQL."""

    def compare(self, task: Task, sql: str | None) -> Comparison:
        """The query's rows beside the gold's. EnvironmentFailedError."""
        ...


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


class StepLabelling(EnvironmentWrapper):
    """A text-to-SQL environment whose verdict brings the steps' labels."""

    labels_steps = True

    def __init__(self, inner: ComparesRows, labeller: StepLabeller) -> None:
        """`labeller`: shared by a run's environments."""
        super().__init__(inner)
        self._compared_by = inner
        self._labeller = labeller

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """The inner verdict, with the labels of the completion's steps. EnvironmentFailedError.

        A completion without SQL, and a question whose gold cannot be executed, has none.
        """
        verdict = self.inner.judge(task, evidence)
        text = evidence.completion_text
        steps = split_steps(text)
        ended = verdict.facts
        if not steps or ended is None or verdict.details.get("outcome") == "unknown":
            return verdict
        labels = [
            self._labeller.label(self._compared_by, task, text[: following.start])
            for following in steps[1:]
        ]
        labels.append(float(verdict.success))
        spans = token_spans(steps, self._labeller.token_starts(evidence.completion_tokens))
        labelled = tuple(
            StepScore(
                index=index,
                text=step.text,
                first_token=span.first,
                last_token=span.last,
                score=label,
                label=label,
            )
            for index, (step, span, label) in enumerate(zip(steps, spans, labels, strict=True))
        )

        def facts(entry_row: UUID, judged_at: datetime) -> tuple[Payload, ...]:
            scored = steps_scored(StepScores(SCORER, labelled), judged_at)
            return (*ended(entry_row, judged_at), scored)

        return replace(verdict, facts=facts)
