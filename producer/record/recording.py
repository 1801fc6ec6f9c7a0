"""State shared by all parts of a recorded training: its streams, clock, lock and tasks."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from producer.emit import StreamWriter
from producer.errors import StopRequestedError
from producer.record.settings import RecordedSettings
from producer.record.values import OrderError, text
from producer.rollouts.plan import StatedTask
from producer.task import RECORDED, Task
from producer.tasks.custom import CustomTask
from producer.tasks.statements import task_facts
from producer.training.lifecycle import OwnedTraining
from producer.training.loaded import state_tasks
from schemas.base import Payload
from schemas.group import SourceType
from schemas.installation import without_secrets

MAX_MESSAGE_CHARS = 2000


class Source(NamedTuple):
    """The step or evaluation that a group belongs to."""

    type: SourceType
    id: UUID
    label: str
    """Label in rollout names: `step-3`, `eval-20`."""
    name: str
    """Name in messages: `step 3`, `the evaluation after step 20`."""
    batch: int
    stream: StreamWriter
    temperature: float
    policy_version: int


class Recording:
    """A training that this process records. Its lock makes all parts thread-safe.

    Implements `Trained`; the weights and the optimiser are the other trainer's.
    """

    def __init__(self, owned: OwnedTraining[RecordedSettings], version: int) -> None:
        self.owned = owned
        self.version = version
        """Number of finished steps, which is the version of the current policy."""
        self.settings, self.emitter, self.stream = owned.config, owned.emitter, owned.stream
        self.now = owned.clock
        self.claim_epoch = owned.stream.point.epoch
        """Epoch under which this process records; part of the rollouts' names."""
        self.lock = threading.RLock()
        self.end: str | None = None
        """How the training ended; None while it is open."""
        self._stated: dict[UUID, StatedTask] = {}
        """Recorded tasks by row id."""

    def save_state(self, folder: Path) -> None:
        """No-op: there are no weights to write."""

    def load_state(self, folder: Path) -> None:
        """No-op: there are no weights to read."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Run one call of the loop under the lock.

        Raises OrderError once the training has ended, and StopRequestedError after another process
        has taken it over; `record.open` replaces the latter by an error that names that process.
        """
        with self.lock:
            _check_open(f"training {self.owned.name!r}", self.end)
            if self.owned.stop.is_set():
                raise StopRequestedError
            yield

    def stated(self, task: Task) -> StatedTask:
        """The task with the ids of its rows; records a task when it first appears."""
        row = task_facts(task)[0].id
        if row not in self._stated:
            self._stated[row] = state_tasks(self.stream, [task])[0]
        return self._stated[row]


class Part(ABC):
    """A part of a recorded training, open until it is ended, for example by a `with` block."""

    def __init__(self, recording: Recording, stream: StreamWriter, title: str) -> None:
        """`stream`: for its events. `title`: for messages. Call with the recording's lock held."""
        self.title = title
        self.end: str | None = None
        """How it ended: `finished`, `failed` or `cancelled`; None while it is open."""
        self._recording = recording
        self._stream = stream

    @abstractmethod
    def _leave(self) -> None:
        """End it at the end of its block. Raises OrderError if it cannot end yet."""

    @abstractmethod
    def _abort(self, error: BaseException) -> None:
        """End it, while it is open, and everything open inside it."""

    def abort(self, error: BaseException) -> None:
        """End it because of an exception in the loop. Idempotent.

        Its own parts end first. An error in the loop makes it fail; Ctrl-C may cancel it. Call with
        the recording's lock held.
        """
        if self.end is None:
            self._abort(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, exc: BaseException | None, _traceback: object) -> None:
        """End it; it fails after an exception, or if it cannot end yet (OrderError)."""
        with self._recording.lock:
            if exc is not None:
                self.abort(exc)
            elif self.end is None:
                try:
                    self._leave()
                except OrderError as error:
                    self.abort(error)
                    raise

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """As `Recording.changing`; also raises OrderError if it has ended."""
        with self._recording.changing():
            _check_open(self.title, self.end)
            yield

    def _emit(self, payload: Payload) -> None:
        self._stream.emit(payload)

    def _now(self) -> datetime:
        return self._recording.now()


def _check_open(title: str, end: str | None) -> None:
    if end is not None:
        message = f"{title} has {end} already; nothing more can be recorded of it"
        raise OrderError(message)


def read_task(task: "str | CustomTask | Task", max_turns: int) -> Task:
    """A task as given by a loop; a bare instruction may take `max_turns`. Raises ValueError."""
    match task:
        case Task():
            return task
        case str() if not task.strip():
            message = "the task is empty; give the instruction, or a record.Task"
            raise ValueError(message)
        case str() if "\x00" in task:
            message = "the task contains a NUL character; remove it"
            raise ValueError(message)
        case str():
            custom = CustomTask.model_validate(text("task", task))
        case CustomTask():
            custom = task
        case _:
            message = f"the task must be text or a record.Task, not {type(task).__name__}"
            raise TypeError(message)
    found = custom.task(RECORDED)
    is_limited = custom is task and "max_steps" in custom.model_fields_set
    return found if is_limited else replace(found, max_steps=max_turns)


def error_message(error: BaseException) -> str:
    """The text under which an exception is recorded."""
    told = text("error", f"{type(error).__name__}: {error}")
    return without_secrets(told)[:MAX_MESSAGE_CHARS]
