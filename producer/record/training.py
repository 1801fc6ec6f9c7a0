"""A recorded training: its steps and evaluations, one after another."""

from contextlib import ExitStack
from uuid import UUID

from producer.emit import StreamWriter
from producer.emit.ownership import claim
from producer.record.evaluation import Evaluation
from producer.record.recording import Recording, Source, error_message
from producer.record.step import Step
from producer.record.values import OrderError, at_least, choice, count, text
from producer.resume.orphans import mark_open
from producer.resume.recorded_results import RecordedResult
from producer.training.evaluation import evaluation_summary
from schemas import ids
from schemas.base import Progress
from schemas.catalogue import stream
from schemas.evaluation import (
    EvaluationCreated,
    EvaluationFinished,
    Kind,
    Split,
    evaluation_label,
)
from schemas.step import StepFinished
from schemas.training import TrainingCancelled, TrainingProgressed


class Training:
    """Created by `record.open`. Thread-safe, but cannot be used in a forked process."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._part: Step | Evaluation | None = None
        """The open step or evaluation, if any."""
        self._last = 0
        """Number of the last step begun."""
        self._points: set[UUID] = set()
        """Evaluations that this process has begun."""

    @property
    def name(self) -> str:
        """The name with which `record.open(NAME, ...)` resumes it."""
        return self._recording.owned.name

    @property
    def id(self) -> UUID:
        """The id of its rows."""
        return ids.training_id(self.name)

    @property
    def last_step(self) -> int:
        """The newest finished step that counts; 0 before the first. The next one is higher."""
        return self._recording.owned.manifest.step

    def step(self, number: int | None = None, *, learning_rate: float | None = None) -> Step:
        """Begin a step. `number` must be higher than the last one; None: the next.

        `learning_rate`: this step's rate; None: the training's. Raises OrderError while another
        step or an evaluation is open, and for a number that is not higher or exceeds num_steps.
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
                rate = at_least("learning_rate", learning_rate, 0)
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
        split: Split | None = None,
    ) -> Evaluation:
        """Begin an evaluation of the current policy; before the first step it is the baseline.

        `num_episodes`: planned number. `temperature`: sampling temperature; 0 is greedy. `tasks`:
        short name of the tasks; `num_tasks`: their number. `split`: their relation to the
        training's tasks. A second evaluation at the same step and temperature is recorded as a
        manual one. Raises OrderError while a step or another evaluation is open.
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
                split=None if split is None else choice("split", split, Split),
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
            # A resumed training supersedes its own evaluations, but nothing would end this one.
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
        """Record that the training has started; called by `record.open`."""
        self._recording.owned.begin(self._recording)
        self._last = self.last_step

    def end(self) -> None:
        """Complete the training, or record the step after which it ended; see `record.open`.

        Raises OrderError while a step or an evaluation is open.
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
        """The evaluation's stream, starting with the event `created`."""
        recording = self._recording
        opened = recording.owned.opened
        if recording.claim_epoch == 1:
            writer = recording.emitter.stream(subject, training_id=self.id)
            writer.emit(created)
            return writer
        # A paused process of this training may wake up and write the same evaluation.
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
                progress=Progress(percent=percent),
            )
        )
