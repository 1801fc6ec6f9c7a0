"""What an episode waits for, and the answers it gets.

An episode is a generator that yields requests; `answer = yield from Open(...)` is typed. The policy
answers `Sample`; `perform` answers the others, on the environment's own thread.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Self

from producer.bounded_text import storable
from producer.environments.environment import (
    ActionRefusedError,
    Environment,
    Observation,
    TextObservation,
    screenshot_of,
    text_of,
)
from producer.policy.policy import Completion, SampleRequest, Turn
from producer.process_rewards.cocte import TokenSpan
from producer.rewards import RewardError
from producer.rollouts.plan import RolloutPlan
from producer.seeds import derived_seed
from producer.task import Task
from producer.validators.judges import AskModel, JudgeFailedError, agent_report
from producer.validators.verdict import NO_EVIDENCE, Evidence, Verdict
from schemas.actions import Answer, Terminate
from schemas.completion import StepScore
from schemas.turn import TakenAction


@dataclass(frozen=True, slots=True)
class StepScores:
    """Scores of a completion's steps."""

    scorer: str
    """Name of the reward model or the method."""
    steps: tuple[StepScore, ...]
    """The scored steps; at least one."""

    @classmethod
    def of(
        cls,
        scorer: str,
        steps: Iterable[tuple[str, TokenSpan, float]],
        *,
        are_labels: bool = False,
    ) -> Self:
        """Build from (text, token span, score) triples. `are_labels`: scores are the labels too."""
        return cls(
            scorer,
            tuple(
                StepScore(
                    index=index,
                    text=text,
                    first_token=span.first,
                    last_token=span.last,
                    score=score,
                    label=score if are_labels else None,
                )
                for index, (text, span, score) in enumerate(steps)
            ),
        )


@dataclass(frozen=True, slots=True)
class CompletionReward:
    """The reward from a user's reward function or reward manager."""

    value: float
    """Reward of the whole completion."""
    tokens: tuple[float, ...] = ()
    """Reward of each token; empty if only the whole completion is rewarded."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of a rubric."""

    labels: StepScores | None = None
    """Step labels obtained by completing each prefix; None if steps are not labelled."""
    scores: StepScores | None = None
    """Step scores of a process reward model; None if steps are not scored."""
    reward: CompletionReward | RewardError | None = None
    """Replaces the outcome's reward; None keeps that one. An error fails the attempt."""


NO_GRADE = Grade()

Rubric = Callable[[Environment, Task, Completion, Verdict | None], Grade]
"""Grades an episode's last completion after the verdict, which is None for a task without a
validator. Called from the environments' threads. Raises EnvironmentFailedError if a database
fails."""


class EpisodeFailedError(Exception):
    """Thrown into an episode whose environment failed or hangs; not the agent's fault."""

    def __init__(self, error_type: str, message: str, *, is_hung: bool = False) -> None:
        super().__init__(message)
        self.error_type = error_type
        """As in `RolloutFailed`."""
        self.is_hung = is_hung
        """The environment does not answer, so nothing more can be asked of it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The environment is running."""

    observation: Observation
    provider_id: str
    up_s: float
    """When it came up, in seconds of the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Open:
    """Start the environment with the task prepared."""

    task: Task
    seed: int

    def __iter__(self) -> Generator["Open", Opened, Opened]:
        return (yield self)

    def perform(self, environment: Environment) -> Opened:
        """Raises whatever the environment raises."""
        observation = environment.open(self.task, self.seed)
        if not isinstance(observation, Observation):
            message = f"{environment.env_type}.open returned {type(observation).__name__}"
            raise TypeError(message)
        return Opened(observation, environment.provider_id, monotonic())


def sample_request(
    plan: RolloutPlan, history: Sequence[Turn], observation: Observation, max_tokens: int
) -> SampleRequest:
    """The sample request for the turn that follows `history`."""
    return SampleRequest(
        episode=plan.id,
        task=plan.task,
        history=tuple(history),
        screenshot=screenshot_of(observation),
        temperature=plan.temperature,
        top_p=plan.top_p,
        max_tokens=max_tokens,
        seed=derived_seed(plan.sampling_seed, len(history) + 1),
        text=text_of(observation),
    )


@dataclass(frozen=True, slots=True)
class Sampled:
    """The policy's completion."""

    completion: Completion
    started_at: datetime
    """When its batch was sent to the policy."""
    started_s: float
    """The same moment on the monotonic clock."""
    seconds: float
    """Seconds that sampling the batch took."""
    is_replayed: bool = False
    """Whether the completion was recorded by an earlier process."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Have the policy sample one turn."""

    request: SampleRequest
    recorded: Completion | None = None
    """The answer that an earlier process recorded; None if there is none."""

    def __iter__(self) -> Generator["Sample", Sampled, Sampled]:
        return (yield self)


@dataclass(frozen=True, slots=True)
class Acted:
    """The result of a turn's actions."""

    observation: Observation
    """What the environment shows after the last action carried out."""
    actions: tuple[TakenAction, ...]
    """The actions that were tried, with the errors of those the device refused."""
    seconds: float
    """Duration, without the validator's."""
    is_solved: bool | None = None
    """Whether the task's validator passes now; None if it was not asked."""


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out a turn's actions, up to the first one that ends the episode."""

    actions: tuple[TakenAction, ...]
    observation: Observation
    """What the device shows now."""
    judged: Task | None = None
    """The task whose validator runs afterwards; None to run none."""

    def __iter__(self) -> Generator["Act", Acted, Acted]:
        return (yield self)

    def perform(self, environment: Environment) -> Acted:
        """Raises whatever the environment raises, except for actions that it refuses."""
        begun_s = monotonic()
        observation, taken = self.observation, []
        for call in self.actions:
            result = call
            if call.action is not None and not isinstance(call.action, Terminate | Answer):
                try:
                    observation = environment.act(call.action)
                    if isinstance(observation, TextObservation) and observation.error is not None:
                        result = _refused(call, observation.error)
                except ActionRefusedError as error:
                    result = _refused(call, str(error))
            taken.append(result)
            if isinstance(call.action, Terminate) or observation.is_over:
                break
        seconds = monotonic() - begun_s
        is_solved = (
            None if self.judged is None else environment.judge(self.judged, NO_EVIDENCE).success
        )
        return Acted(observation, tuple(taken), seconds, is_solved)


def _refused(call: TakenAction, reason: str) -> TakenAction:
    return call.model_copy(update={"error_type": "runtime", "error_message": storable(reason)})


@dataclass(frozen=True, slots=True)
class Judged:
    """The validator's verdict."""

    verdict: Verdict | None
    """None for a task without a validator."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Judge:
    """Judge whether the task is solved, by the task's kind of validation."""

    task: Task
    evidence: Evidence
    ask_model: AskModel | None = None
    """Asks the endpoint that judges the task; None if no task uses one."""

    def __iter__(self) -> Generator["Judge", Judged, Judged]:
        return (yield self)

    def perform(self, environment: Environment) -> Judged:
        """Raises JudgeFailedError and whatever the environment raises."""
        begun_s = monotonic()
        verdict = self._verdict(environment)
        return Judged(verdict, monotonic() - begun_s)

    def _verdict(self, environment: Environment) -> Verdict | None:
        match self.task.validation_type:
            case None:
                return None
            case "agent":
                return agent_report(self.evidence)
            case "shell" | "environment":
                return environment.judge(self.task, self.evidence)
            case "model":
                if self.ask_model is None:
                    message = f"task {self.task.task_id} has a judge that was not opened"
                    raise JudgeFailedError(message)
                return self.ask_model(self.task, self.evidence)


@dataclass(frozen=True, slots=True)
class ApplyRubric:
    """Grade the last completion."""

    rubric: Rubric
    task: Task
    completion: Completion
    verdict: Verdict | None

    def __iter__(self) -> Generator["ApplyRubric", Grade, Grade]:
        return (yield self)

    def perform(self, environment: Environment) -> Grade:
        """Raises EnvironmentFailedError if a database fails."""
        return self.rubric(environment, self.task, self.completion, self.verdict)


@dataclass(frozen=True, slots=True)
class Close:
    """Close the environment."""

    def __iter__(self) -> Generator["Close", None, None]:
        return (yield self)

    def perform(self, environment: Environment) -> None:
        """Raises whatever the environment raises."""
        environment.close()


EnvironmentRequest = Open | Act | Judge | ApplyRubric | Close
Request = EnvironmentRequest | Sample
EpisodeAnswer = Opened | Sampled | Acted | Judged | Grade | None
