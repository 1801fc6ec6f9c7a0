"""Labels the steps of a completion by completing each prefix several times (Monte Carlo).

A step's label is the share of completions of the prefix that ends with it whose rows are the gold's
(Math-Shepherd's soft label); the last step's is whether the completion itself is right. Sampling
reaches this module as a callable: it knows no network.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from producer.environments.environment import TextObservation
from producer.environments.text_to_sql.environment import TextToSqlEnvironment
from producer.process_rewards.cocte import split_steps
from producer.process_rewards.sql_text import find_sql
from producer.process_rewards.token_spans import token_spans
from producer.rollouts.events import steps_scored
from producer.rollouts.requests import StepScores
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action
from schemas.base import Payload
from schemas.completion import StepScore

SCORER = "monte_carlo"
CompletePrefix = Callable[[Task, str], Sequence[str]]
"""(task, what the answer begins with) -> whole answers. Deterministic; called by one thread."""
TokenStarts = Callable[[Sequence[int]], Sequence[int]]
"""Tokens of a completion -> for each the index of its first character."""


@dataclass(slots=True)
class StepLabeller:
    """Labels prefixes, each once in a run. Thread-safe: one prefix is completed at a time."""

    complete: CompletePrefix
    token_starts: TokenStarts
    _labels: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def label(self, environment: TextToSqlEnvironment, task: Task, prefix: str) -> float:
        """Share of right completions of the prefix. EnvironmentFailedError."""
        with self._lock:
            key = (task.task_id, prefix)
            if key not in self._labels:
                answers = self.complete(task, prefix)
                right = sum(_is_right(environment, task, answer) for answer in answers)
                self._labels[key] = right / len(answers)
            return self._labels[key]


def _is_right(environment: TextToSqlEnvironment, task: Task, answer: str) -> bool:
    span = find_sql(answer)
    sql = None if span is None else answer[span.start : span.end]
    return environment.compare(task, sql).outcome == "correct"


class StepLabelling:
    """A text-to-SQL environment whose verdict brings the steps' labels."""

    env_type = TextToSqlEnvironment.env_type
    box_type = TextToSqlEnvironment.box_type
    is_simulated = True
    labels_steps = True
    ends_on_parse_error = True

    def __init__(self, inner: TextToSqlEnvironment, labeller: StepLabeller) -> None:
        """`labeller`: shared by a run's environments."""
        self._inner = inner
        self._labeller = labeller

    @property
    def provider_id(self) -> str:
        """As the inner environment's."""
        return self._inner.provider_id

    def open(self, task: Task, seed: int) -> TextObservation:
        """As the inner environment."""
        return self._inner.open(task, seed)

    def act(self, action: Action) -> TextObservation:
        """As the inner environment."""
        return self._inner.act(action)

    def shell(self, command: str) -> str:
        """As the inner environment."""
        return self._inner.shell(command)

    def close(self) -> None:
        """As the inner environment."""
        self._inner.close()

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """The inner verdict, with the labels of the completion's steps. EnvironmentFailedError.

        A completion without SQL, and a question whose gold cannot be executed, has none.
        """
        verdict = self._inner.judge(task, evidence)
        text = evidence.completion_text
        steps = split_steps(text)
        ended = verdict.facts
        if not steps or ended is None or verdict.details.get("outcome") == "unknown":
            return verdict
        labels = [
            self._labeller.label(self._inner, task, text[: following.start])
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
