"""A recorded training: its steps and evaluations, one after the other."""

from contextlib import ExitStack
from typing import Literal
from uuid import UUID

from producer.emit import StreamWriter
from producer.emit.ownership import claim
from producer.record.evaluation import Evaluation
from producer.record.recording import Recording, Source, error_message
from producer.record.step import Step
from producer.record.values import OrderError, at_least, count, finite, text
from producer.resume.orphans import mark_open
from producer.resume.recorded_results import RecordedResult
from producer.training.evaluation import evaluation_summary
from schemas import ids
from schemas.base import Progress
from schemas.catalogue import stream
from schemas.evaluation import EvaluationCreated, EvaluationFinished, Kind, evaluation_label
from schemas.step import StepFinished
from schemas.training import TrainingCancelled, TrainingProgressed


class Training:
    """Made by `record.open`. Thread-safe; a forked process cannot use it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._part: Step | Evaluation | None = None
        """The step or evaluation that is open."""
        self._last = 0
        """The newest step that was begun."""
        self._points: set[UUID] = set()
        """Evaluations that this process began."""

    @property
    def name(self) -> str:
        """Which continues it: `record.open(NAME, ...)`."""
        return self._recording.owned.name

    @property
    def id(self) -> UUID:
        """Of its rows."""
        return ids.training_id(self.name)

    @property
    def last_step(self) -> int:
        """The newest finished step that counts; 0 before the first. The next one is higher."""
        return self._recording.owned.manifest.step

    def step(self, number: int | None = None, *, learning_rate: float | None = None) -> Step:
        """Begin a step. `number`: higher than the last; None: the next.

        `learning_rate`: of this step; None: the training's. OrderError while another step or an
        evaluation is open, and for a number that goes back or is beyond num_steps.
        """
        recording = self._recording
        with recording.changing():
            self._check_alone("a step")
            settings = recording.settings
            step = self._last + 1 if number is None else count("number", number, 1)
            if step <= self._last:
                message = (
                    f"step {step} after step {self._last}: numbers of steps go up (to repeat steps,"
                    " call record.open(NAME, ..., after_step=N) in a new process)"
                )
                raise OrderError(message)
            if step > settings.num_steps:
                message = f"step {step} is beyond num_steps={settings.num_steps} of record.open"
                raise OrderError(message)
            rate = settings.learning_rate
            if learning_rate is not None:
                rate = finite("learning_rate", learning_rate)
            source = Source(
                "step",
                ids.step_id(self.id, recording.owned.generation, step),
                f"step-{step}",
                f"step {step}",
                step - 1,
                recording.stream,
                settings.temperature,
                recording.version,
            )
            opened = Step(recording, source, step, rate, self._step_ended)
            self._part, self._last = opened, step
            return opened

    def evaluation(
        self,
        *,
        num_episodes: int,
        temperature: float = 0.0,
        tasks: str | None = None,
        num_tasks: int | None = None,
        split: Literal["held_out", "training_tasks_unseen_seeds", "training_tasks", "mixed"]
        | None = None,
    ) -> Evaluation:
        """Begin an evaluation of the policy as it is now; before the first step it is the baseline.

        `num_episodes`: planned. `temperature`: of its sampling; 0 is greedy. `tasks`: short name of
        the tasks, of which there are `num_tasks`. `split`: how they relate to the training's. A
        second one at the same step and temperature is recorded as one by hand. OrderError while a
        step or another one is open.
        """
        recording = self._recording
        with recording.changing():
            self._check_alone("an evaluation")
            episodes = count("num_episodes", num_episodes, 1)
            sampled = at_least("temperature", temperature, 0)
            step, generation = self.last_step, recording.owned.generation
            kind: Kind = "scheduled" if step else "baseline"
            evaluation_id = ids.point_id(self.id, generation, step, sampled)
            history = recording.owned.opened.history
            subject = stream("evaluation", evaluation_id)
            if evaluation_id in self._points or history.of(subject).events:
                kind = "manual"
                evaluation_id = ids.manual_eval_id(UUID(ids.uuid7_text(recording.now())))
            created = EvaluationCreated(
                kind=kind,
                training_id=self.id,
                generation=generation,
                step=step,
                model_path=recording.settings.policy,
                total_tasks=episodes,
                temperature=sampled,
                split=split,
                num_tasks=None if num_tasks is None else count("num_tasks", num_tasks, 1),
                task_source=None if tasks is None else text("tasks", tasks),
            )
            label = evaluation_label(kind, step, sampled)
            opened = self._open_evaluation(evaluation_id, label, created)
            self._points.add(evaluation_id)
            self._part = opened
            return opened

    def _open_evaluation(
        self, evaluation_id: UUID, label: str, created: EvaluationCreated
    ) -> Evaluation:
        recording, marker = self._recording, ExitStack()
        subject, is_manual = stream("evaluation", evaluation_id), created.kind == "manual"
        if is_manual:
            # A training that is continued supersedes its own evaluations; this one is nobody's.
            folder = recording.owned.installation.open_dir
            marker.enter_context(mark_open(folder, subject, recording.emitter))
        after = f"after step {created.step}" if created.step else "before the first step"
        source = Source(
            "baseline" if created.kind == "baseline" else "eval",
            evaluation_id,
            f"eval-{evaluation_id}" if is_manual else label,
            f"the evaluation {after}",
            0,
            self._evaluation_stream(subject, created),
            created.temperature or 0.0,
            recording.version,
        )

        def ended(finished: EvaluationFinished | None) -> None:
            self._part = None
            if finished is not None and not is_manual:
                result = RecordedResult(evaluation_id, created, finished)
                recording.owned.keep_evaluation(evaluation_summary(label, result))

        return Evaluation(recording, source, created.kind, created.total_tasks, marker, ended)

    def begin(self) -> None:
        """Record that it has started; `record.open` does."""
        self._recording.owned.begin(self._recording)
        self._last = self.last_step

    def end(self) -> None:
        """Complete it, or say after which step the loop ended it; `record.open` does.

        OrderError while a step or an evaluation is open.
        """
        recording = self._recording
        with recording.changing():
            self._check_alone("the end of the training")
            done, total = self.last_step, recording.settings.num_steps
            recording.end = "ended"
            if done >= total:
                recording.owned.complete(Progress(percent=100.0))
                return
            message = (
                f"the loop ended it after step {done} of {total}; record.open(NAME,"
                " ...) continues it"
            )
            recording.stream.emit(
                TrainingCancelled(status_message=message, ended_at=recording.now())
            )
            recording.emitter.flush()

    def abort(self, error: BaseException) -> None:
        """End what is open because of an exception; the training's own end follows."""
        with self._recording.lock:
            if self._part is not None:
                self._part.abort(error)
            self._recording.end = f"ended ({error_message(error)[:200]})"

    def _check_alone(self, what: str) -> None:
        if self._part is not None:
            is_step = isinstance(self._part, Step)
            part = self._part.title if is_step else "an evaluation"
            message = f"{what} inside {part}, which is open; close() it first"
            raise OrderError(message)

    def _evaluation_stream(self, subject: str, created: EvaluationCreated) -> StreamWriter:
        """The evaluation's stream, with its first event."""
        recording = self._recording
        opened = recording.owned.opened
        if recording.claim_epoch == 1:
            writer = recording.emitter.stream(subject, training_id=self.id)
            writer.emit(created)
            return writer
        # A paused process of this training that goes on may write the same evaluation.
        return claim(
            recording.emitter,
            created,
            opened.history.of(subject),
            opened.history.ends,
            training_id=self.id,
            stop=recording.owned.stop,
        ).stream

    def _step_ended(self, step: Step, finished: StepFinished | None) -> None:
        recording = self._recording
        self._part = None
        if finished is None:
            return
        recording.version += 1
        recording.owned.save_step(recording, step.number, [finished])
        percent = 100.0 * step.number / recording.settings.num_steps
        recording.stream.emit(
            TrainingProgressed(
                current_phase="training",
                current_step=step.number,
                progress=Progress(percent=max(percent, recording.owned.stated_percent)),
            )
        )
