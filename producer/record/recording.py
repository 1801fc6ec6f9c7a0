"""What every part of a recorded training shares: its streams, its clock, its lock, its tasks."""

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
from producer.task import Task
from producer.tasks.custom import CustomTask
from producer.tasks.statements import task_facts
from producer.training.lifecycle import OwnedTraining
from producer.training.loaded import state_tasks
from schemas.base import Payload
from schemas.group import SourceType
from schemas.installation import without_secrets

MAX_MESSAGE_CHARS = 2000
TASK_SOURCE = "recorded"


class Source(NamedTuple):
    """What a group belongs to: a step or an evaluation."""

    type: SourceType
    id: UUID
    label: str
    """In names of rollouts: `step-3`, `eval-20`."""
    name: str
    """In messages: `step 3`, `the evaluation after step 20`."""
    batch: int
    stream: StreamWriter
    temperature: float
    policy_version: int


class Recording:
    """A training that this process records. Its lock makes every part thread-safe.

    A `Trained`, whose weights and optimiser are the other trainer's.
    """

    def __init__(self, owned: OwnedTraining[RecordedSettings], version: int) -> None:
        self.owned = owned
        self.version = version
        """Finished steps: the version of the policy that samples now."""
        self.settings, self.emitter, self.stream = owned.config, owned.emitter, owned.stream
        self.now = owned.clock
        self.claim_epoch = owned.stream.point.epoch
        """Under which this process records; part of the rollouts' names."""
        self.lock = threading.RLock()
        self.end: str | None = None
        """How the training has ended; None: it is open."""
        self._stated: dict[UUID, StatedTask] = {}
        """By the task's row."""

    def save_state(self, folder: Path) -> None:
        """There are no weights to write."""

    def load_state(self, folder: Path) -> None:
        """As above."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """One call of the loop, alone.

        OrderError once the training has ended; StopRequestedError after another process took it
        over, which `record.open` turns into that process's name.
        """
        with self.lock:
            _check_open(f"training {self.owned.name!r}", self.end)
            if self.owned.stop.is_set():
                raise StopRequestedError
            yield

    def stated(self, task: Task) -> StatedTask:
        """The task with the ids of its rows; recorded when it is met first."""
        row = task_facts(task)[0].id
        if row not in self._stated:
            self._stated[row] = state_tasks(self.stream, [task])[0]
        return self._stated[row]


class Part(ABC):
    """A part of a recorded training, open until it ends. A `with` block ends it."""

    def __init__(self, recording: Recording, stream: StreamWriter, title: str) -> None:
        """`stream`: of its events. `title`: in messages. With the recording's lock held."""
        self.title = title
        self.end: str | None = None
        """How it has ended: `finished`, `failed` or `cancelled`; None: it is open."""
        self._recording = recording
        self._stream = stream

    @abstractmethod
    def _leave(self) -> None:
        """End it at the end of its block. OrderError when it cannot end yet."""

    @abstractmethod
    def _abort(self, error: BaseException) -> None:
        """End it, which is open, and what is open in it."""

    def abort(self, error: BaseException) -> None:
        """End it because of an exception in the loop, with the recording's lock held. Idempotent.

        Parts of it end first. An error of the loop fails it; Ctrl-C may cancel it.
        """
        if self.end is None:
            self._abort(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, exc: BaseException | None, _traceback: object) -> None:
        """It has ended; failed after an exception, or when it cannot end yet (OrderError)."""
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
        """As `Recording.changing`. OrderError when it has ended."""
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
    """A task as a loop names it; an instruction alone may take `max_turns`. ValueError."""
    match task:
        case Task():
            return task
        case str() if not task.strip():
            message = "the task is empty; give the instruction, or a record.Task"
            raise ValueError(message)
        case str():
            custom = CustomTask.model_validate(text("task", task))
        case CustomTask():
            custom = task
        case _:
            message = f"the task must be text or a record.Task, not {type(task).__name__}"
            raise TypeError(message)
    found = custom.task(TASK_SOURCE)
    is_limited = custom is task and "max_steps" in custom.model_fields_set
    return found if is_limited else replace(found, max_steps=max_turns)


def error_message(error: BaseException) -> str:
    """An exception as it is recorded."""
    told = text("error", f"{type(error).__name__}: {error}")
    return without_secrets(told)[:MAX_MESSAGE_CHARS]
