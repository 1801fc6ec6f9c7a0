"""One attempt at a task: the protocol of an episode, and the events its steps emit.

A generator that yields what it waits for (see `requests`) and is resumed with the answer. The
engine owns threads, batches and deadlines.
"""

import logging
from collections.abc import Callable, Generator
from datetime import datetime
from time import monotonic
from uuid import UUID

from producer.algorithms.settings import SettingsGroup
from producer.bounded_text import cut
from producer.codecs.codec import CONTEXT_FULL
from producer.emit import Emitter
from producer.environments.environment import (
    Environment,
    Observation,
    screenshot_of,
    text_of,
)
from producer.policy.policy import Completion, SampleRequest, Turn
from producer.rewards import Reward, RewardError
from producer.rewards.named import binary
from producer.rollouts import events
from producer.rollouts.devices import Device, LeftDevices
from producer.rollouts.plan import RolloutPlan, RolloutResult, scored_steps
from producer.rollouts.requests import (
    NO_GRADE,
    Act,
    Acted,
    ApplyRubric,
    Close,
    EpisodeAnswer,
    EpisodeFailedError,
    Grade,
    Judge,
    Judged,
    Open,
    Opened,
    Request,
    Rubric,
    Sample,
    Sampled,
    sample_request,
)
from producer.task import Task
from producer.validators import Evidence
from producer.validators.judges import AskModel
from schemas import ids
from schemas.actions import Terminate
from schemas.catalogue import stream
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentStarted,
)
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutCancelled,
    RolloutEnvironmentRequested,
    RolloutFailed,
    RolloutPhaseEntered,
    RolloutStarted,
)
from schemas.turn import TakenAction

logger = logging.getLogger(__name__)

CANCEL_REASON = "the run was stopped"
NUM_JUDGED_SCREENS = 3
"""Number of screenshots shown to a judge: the last one, and those before the last actions."""


class EpisodeSettings(SettingsGroup):
    """What all rollouts of a run share: fields of the configuration, and what it names."""

    training_id: UUID | None
    max_tokens: int
    """Of one completion."""
    max_task_time_seconds: float
    """An episode whose actions have taken longer ends after its turn and is judged. The policy's
    time does not count: it depends on the batch, the server and the machine."""
    max_turn_time_seconds: float
    """An environment that does not answer for so long has failed."""
    turn_cost: float
    parse_error_cost: float
    validate_every_turn: bool = False
    """Ask the validator after every turn, not only at the end."""
    ask_model: AskModel | None = None
    """Asks the endpoints that judge tasks; None where no task names one."""
    rubric: Rubric | None = None
    """Grades the last completion; None: its verdict is enough."""
    reward: Reward = binary
    """Of the outcome, before the costs."""


class Episode:
    """One attempt at a task. Call `run` once, from one thread."""

    def __init__(
        self,
        plan: RolloutPlan,
        environment: Environment,
        *,
        policy_name: str,
        policy_version: int,
        settings: EpisodeSettings,
        emitter: Emitter,
        clock: Callable[[], datetime],
        left_devices: LeftDevices | None = None,
    ) -> None:
        """`environment` is only described here; all operations on it go through requests.

        `policy_version` is the version at the start of the episode.
        """
        self.plan = plan
        self._environment = environment
        self._policy_name = policy_name
        self._policy_version = policy_version
        self._settings = settings
        self._emitter = emitter
        self._clock = clock
        self._environment_id = ids.environment_id(plan.id)
        self._rollout = emitter.stream(stream("rollout", plan.id), training_id=settings.training_id)
        self._device = emitter.stream(
            stream("environment", self._environment_id), training_id=settings.training_id
        )
        self.device = Device(
            environment, self._device, clock, left_devices or LeftDevices(), plan.name
        )
        """Records how the device ends."""
        self._begun_s = 0.0
        self._turns: list[Turn] = []
        self._completion: Completion | None = None
        self._first_turn_version: int | None = None
        self._actions: list[TakenAction] = []
        self._turn_seconds = self._action_seconds = 0.0
        self._turn_first_success: int | None = None
        self._recorded = plan.recorded if environment.is_simulated else ()
        self._ends_on_parse_error = environment.ends_on_parse_error

    def run(self) -> Generator[Request, EpisodeAnswer, RolloutResult]:
        """Run the attempt from creation to its end.

        If the environment fails, throw EpisodeFailedError into the generator: the attempt ends as
        failed. Close the generator to cancel; the caller must then close the environment.
        """
        self._create()
        try:
            return (yield from self._attempt())
        except EpisodeFailedError as failure:
            result = self._fail(failure)
            if failure.is_hung:
                self.device.leak(str(failure))
                return result
            try:
                # The device of the next attempt must not exist at the same time.
                yield from Close()
                self.device.released()
            except EpisodeFailedError as error:
                self.device.leak(str(error))
            return result
        except GeneratorExit:
            self._cancel()
            raise
        finally:
            self._rollout.close()

    def _attempt(self) -> Generator[Request, EpisodeAnswer, RolloutResult]:
        plan = self.plan
        opened = yield from Open(plan.task, plan.seed)
        self._start(opened)
        observation, is_over = opened.observation, False
        while not is_over:
            request = sample_request(plan, self._turns, observation, self._settings.max_tokens)
            sampled = yield from Sample(request, self._recorded_completion(observation))
            acted = yield from Act(sampled.completion.actions, observation, self._judged_task())
            is_over = self._take_turn(request, observation, sampled, acted)
            observation = acted.observation
        self._rollout.emit(RolloutPhaseEntered(current_phase="validation", progress_percent=100.0))
        judged = yield from Judge(
            plan.task,
            self._evidence(observation),
            self._settings.ask_model,
        )
        grade = yield from self._grade(judged)
        yield from Close()
        return self._finish(judged, grade)

    def _grade(self, judged: Judged) -> Generator[Request, EpisodeAnswer, Grade]:
        rubric = self._settings.rubric
        if rubric is None or self._completion is None:
            return NO_GRADE
        return (yield from ApplyRubric(rubric, self.plan.task, self._completion, judged.verdict))

    def _evidence(self, last: Observation) -> Evidence:
        screens = [turn.screenshot for turn in self._turns[1 - NUM_JUDGED_SCREENS :]]
        return Evidence(
            tuple(screen.png for screen in (*screens, screenshot_of(last)) if screen is not None),
            tuple(self._actions),
            len(self._turns),
        )

    def _create(self) -> None:
        plan = self.plan
        self._begun_s = monotonic()
        self._rollout.emit(events.rollout_created(plan, self._policy_name, self._policy_version))
        self._rollout.emit(RolloutEnvironmentRequested(env_id=self._environment_id))
        self._device.emit(events.environment_requested(self._environment, plan.seed))
        self._device.emit(EnvironmentCreationStarted())

    def _start(self, opened: Opened) -> None:
        now = self._clock()
        self._device.emit(EnvironmentStarted(gbox_id=opened.provider_id, started_at=now))
        self._rollout.emit(RolloutAgentInitialized(env_creation_time_s=opened.up_s - self._begun_s))
        self._rollout.emit(
            RolloutStarted(agent_init_time_s=monotonic() - opened.up_s, task_started_at=now)
        )

    def _recorded_completion(self, observation: Observation) -> Completion | None:
        """The recorded completion for this turn; None once the screen or policy version differs.

        The turns replayed so far match this device's screens, so the episode continues from there.
        """
        if len(self._turns) >= len(self._recorded):
            return None
        turn = self._recorded[len(self._turns)]
        is_same = _is_same(turn.observation, observation)
        if is_same and turn.completion.policy_version == self._policy_version:
            return turn.completion
        logger.warning(
            "%s cannot be played again beyond turn %d of %d: %s; its further turns are new",
            self.plan.name,
            len(self._turns),
            len(self._recorded),
            "the device shows another screen"
            if not is_same
            else "another version of the policy took the next",
        )
        self._recorded = ()
        return None

    def _take_turn(
        self, request: SampleRequest, observation: Observation, sampled: Sampled, acted: Acted
    ) -> bool:
        """Record the turn; return whether it was the last."""
        self._action_seconds += acted.seconds
        is_over = (
            acted.observation.is_over
            or any(isinstance(call.action, Terminate) for call in acted.actions)
            or any(call.tool_name == CONTEXT_FULL for call in acted.actions)
            or (self._ends_on_parse_error and any(_is_unparsed(call) for call in acted.actions))
            or len(self._turns) + 1 >= self.plan.max_turns
            or self._action_seconds > self._settings.max_task_time_seconds
        )
        self._turn_seconds += monotonic() - sampled.started_s
        version = sampled.completion.policy_version
        if version is None:
            version = self._policy_version
        if self._first_turn_version is None:
            self._first_turn_version = version
        for screen in (request.screenshot, screenshot_of(acted.observation)):
            if screen is not None:
                self._emitter.put_blob(screen.png, screen.ref)
        self._rollout.emit(
            events.turn_taken(
                request,
                sampled,
                acted,
                max_turns=self.plan.max_turns,
                policy_version=version,
                is_over=is_over,
                ended_at=self._clock(),
            )
        )
        completion = self._completion = sampled.completion
        self._turns.append(Turn(observation, completion))
        self._actions.extend(acted.actions)
        if acted.is_solved and self._turn_first_success is None:
            self._turn_first_success = len(self._turns)
        return is_over

    def _judged_task(self) -> Task | None:
        """The task, if its validator should run after this turn. A device answers at once."""
        is_asked = self._settings.validate_every_turn and self.plan.task.validation_type == "shell"
        return self.plan.task if is_asked else None

    def _finish(self, judged: Judged, grade: Grade) -> RolloutResult:
        now, plan, settings = self._clock(), self.plan, self._settings
        validation = events.validation_recorded(plan, judged, now)
        if validation is not None:
            self._rollout.emit(validation)
        facts = events.end_facts(plan, judged, grade, now)
        for fact in facts:
            self._rollout.emit(fact)
        self.device.released()
        try:
            if isinstance(grade.reward, RewardError):
                raise grade.reward
            finished = events.rollout_finished(
                plan,
                judged,
                grade.reward,
                self._turns,
                self._actions,
                reward=settings.reward,
                turn_cost=settings.turn_cost,
                parse_error_cost=settings.parse_error_cost,
                turn_first_success=self._turn_first_success,
                ended_at=now,
                rollout_time_s=monotonic() - self._begun_s,
            )
        except RewardError as error:
            return self._failed("reward", cut(str(error)), now)
        self._rollout.emit(finished)
        return RolloutResult(
            plan,
            finished,
            policy_version=self._sampled_version,
            turn_seconds=self._turn_seconds,
            turns=tuple(turn for turn in self._turns if turn.completion.tokens),
            responses=tuple(turn.completion.text for turn in self._turns),
            words=tuple(text_of(turn.observation) for turn in self._turns[1:]),
            scored_steps=scored_steps(facts),
        )

    def _fail(self, failure: EpisodeFailedError) -> RolloutResult:
        now = self._clock()
        reason = cut(str(failure))
        if failure.error_type not in {"validator", "policy"}:
            self.device.failure = reason
            evidence = Evidence((), tuple(self._actions), len(self._turns))
            for fact in events.failure_facts(self._environment, self.plan, evidence, reason, now):
                self._rollout.emit(fact)
        return self._failed(failure.error_type, reason, now)

    def _failed(self, error_type: str, reason: str, now: datetime) -> RolloutResult:
        failed = RolloutFailed(
            error_type=error_type,
            error_message=reason,
            num_turns=len(self._turns),
            ended_at=now,
        )
        self._rollout.emit(failed)
        return RolloutResult(self.plan, failed, self._sampled_version, self._turn_seconds)

    @property
    def _sampled_version(self) -> int:
        """Policy version of the first turn, the oldest; before any turn, the one at the start."""
        first = self._first_turn_version
        return self._policy_version if first is None else first

    def _cancel(self) -> None:
        self.device.status_message = CANCEL_REASON
        self._rollout.emit(RolloutCancelled(reason=CANCEL_REASON, ended_at=self._clock()))


def _is_same(recorded: Observation, observation: Observation) -> bool:
    """Whether the policy gets the same prompt. How an action failed is not part of the prompt."""
    pictures = [
        None if screen is None else screen.ref
        for screen in (screenshot_of(recorded), screenshot_of(observation))
    ]
    return pictures[0] == pictures[1] and text_of(recorded) == text_of(observation)


def _is_unparsed(call: TakenAction) -> bool:
    return call.error_type is not None and call.error_type != "runtime"
