"""Shows solved past sessions in front of a prompt: experience replay without training."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from producer.environments.environment import Environment, Observation, TextObservation
from producer.environments.wrapper import EnvironmentWrapper
from producer.rollouts.plan import RolloutResult
from producer.task import Task
from producer.validators.verdict import EndFacts, Evidence, Verdict
from schemas.base import Payload
from schemas.session import SessionEnded

MAX_SESSION_CHARS = 4000
"""Maximum length of one session's text. Longer ones are not kept."""


def kept_sessions(
    sessions: tuple[str, ...], results: Iterable[RolloutResult], number: int
) -> tuple[str, ...]:
    """The newest `number` solved sessions as text, oldest first; `results` are in their order."""
    found = [
        text
        for result in results
        if result.is_scored and result.success
        if len(text := _as_text(result)) <= MAX_SESSION_CHARS
    ]
    return (*sessions, *found)[-number:] if number else ()


def _as_text(result: RolloutResult) -> str:
    lines = [f"Question: {result.plan.task.description}"]
    for turn, response in enumerate(result.responses):
        if turn:
            lines.append(f"Database: {result.words[turn - 1]}")
        lines.append(f"You: {response}")
    return "\n".join(lines)


class WithPastSessions(EnvironmentWrapper):
    """An environment whose first observation ends with past sessions."""

    def __init__(self, inner: Environment, sessions: tuple[str, ...]) -> None:
        super().__init__(inner)
        self.sessions = sessions

    def open(self, task: Task, seed: int) -> Observation:
        """The environment's first observation, followed by the past sessions."""
        observation = self.inner.open(task, seed)
        if not isinstance(observation, TextObservation):
            return observation
        past = [f"Session {number}\n{text}" for number, text in enumerate(self.sessions, start=1)]
        words = [] if observation.text is None else [observation.text]
        introduction = "Right sessions of the past, as examples:"
        return TextObservation("\n\n".join([*words, introduction, *past]))

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """The environment's verdict; its session event records the number of past sessions."""
        verdict = self.inner.judge(task, evidence)
        return replace(verdict, facts=self._counted(verdict.facts))

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts:
        """The environment's failure events, counted as in `judge`; none if it has none."""
        return self._counted(self.inner.failure_facts(evidence, reason))

    def _counted(self, stated: EndFacts | None) -> EndFacts:
        def facts(entry_id: UUID, ended_at: datetime) -> tuple[Payload, ...]:
            return tuple(
                fact.model_copy(update={"num_replayed": len(self.sessions)})
                if isinstance(fact, SessionEnded)
                else fact
                for fact in (stated(entry_id, ended_at) if stated else ())
            )

        return facts
