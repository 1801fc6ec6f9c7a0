"""The trainings whose states a home keeps, and their annotations.

Annotations (a display name, tags, a note, and whether lists omit the training) have their own
stream, so that they can be changed while another process trains.
"""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import CuaTrainError, MismatchError, NotFoundError
from producer.log.stream_history import StreamHistory, read_back
from producer.resume import resume_state
from producer.resume.run_folder import find_run_folder
from producer.resume.training_lock import ENDED, TAKEOVER_AFTER_S
from producer.training.preflight import is_unused
from producer.training.summary import last_evaluation
from producer.training_name import check_training_name
from schemas import ids
from schemas.advice import did_you_mean
from schemas.annotation import TrainingAnnotated
from schemas.catalogue import stream, stream_owner
from schemas.installation import Installation

LOG_TIMEOUT_S = 60.0

Change = Callable[[TrainingAnnotated], TrainingAnnotated]
"""Maps the previous annotation to the new one."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of a change."""

    annotation: TrainingAnnotated
    changed: bool
    """False if the annotation was already so and nothing was emitted."""


def annotate(installation: Installation, name: str, change: Change) -> Annotated:
    """Record a change of the training's annotation; returns once it is in the log.

    Raises NotFoundError for an unknown training, CuaTrainError if another process annotated it at
    the same time, UnreachableError if the log cannot be reached.
    """
    check_known(installation, name)
    training_id = ids.training_id(name)
    with Emitter.open(installation) as emitter:
        _check_recorded(emitter, installation, name, training_id)
        subject = stream("annotation", training_id)
        history = emitter.log.read_back(subject, {}, timeout_s=LOG_TIMEOUT_S)
        before = newest_annotation(history, training_id)
        after = change(before)
        if after == before:
            return Annotated(after, changed=False)
        try:
            claim(emitter, after, history, {}, training_id=training_id)
        except ClaimLostError as error:
            message = f"another process annotated training {name!r} meanwhile"
            raise CuaTrainError(message, ways=("run the same command again",)) from error
        return Annotated(after, changed=True)


def read_annotations(
    installation: Installation, names: Collection[str]
) -> dict[str, TrainingAnnotated]:
    """The newest annotation of each training. Raises UnreachableError without the log."""
    if not names or is_unused(installation):
        return {}
    subjects = {name: stream("annotation", ids.training_id(name)) for name in names}
    histories = read_back(installation, list(subjects.values()), timeout_s=LOG_TIMEOUT_S)
    return {
        name: newest_annotation(histories[subject], ids.training_id(name))
        for name, subject in subjects.items()
    }


def newest_annotation(history: StreamHistory, training_id: UUID) -> TrainingAnnotated:
    """The last annotation of a stream, or an empty one."""
    payloads = (event.payload for event in reversed(history.events))
    found = next((payload for payload in payloads if isinstance(payload, TrainingAnnotated)), None)
    return found or TrainingAnnotated(training_id=training_id)


def check_known(installation: Installation, name: str) -> None:
    """Raises NotFoundError on a machine without a log, so that none is created."""
    if is_unused(installation) and installation.kafka_bootstrap_servers is None:
        message = f"there is no training {name!r}: {installation.home} has no log yet"
        raise NotFoundError(message)


def unknown_training(installation: Installation, name: str) -> NotFoundError:
    """The error for a training that is not in the log."""
    runs = installation.runs_dir
    known = [path.name for path in runs.iterdir()] if runs.is_dir() else []
    hint = did_you_mean(name, known) or " See `cua-train trainings list`"
    return NotFoundError(f"the log has no training {name!r}.{hint}")


def _check_recorded(
    emitter: Emitter, installation: Installation, name: str, training_id: UUID
) -> None:
    emitter.log.connect(LOG_TIMEOUT_S)
    emitter.log.wait_shipped(LOG_TIMEOUT_S)
    if any(True for _ in emitter.log.read_stream(stream("training", training_id), {})):
        return
    raise unknown_training(installation, name)


INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class KeptTraining:
    """A training whose state is kept."""

    training_name: str
    display_name: str | None
    """None if it was not renamed."""
    tags: tuple[str, ...]
    note: str | None
    hidden: bool
    status: str | None
    """The training's status in the log; `interrupted` if it has not ended but its process sends no
    heartbeats. None if the log lacks the training, or has an unreadable record of it."""
    step: int
    """Number of finished steps."""
    total_steps: int
    success: float | None
    """Success in its last evaluation; None before the first."""
    saved_at: datetime
    """When its newest state was saved."""
    folder: Path

    def as_json(self) -> dict[str, JsonValue]:
        """The training as JSON, for scripts."""
        saved_at = self.saved_at.isoformat(timespec="seconds")
        changed = {"tags": list(self.tags), "saved_at": saved_at, "folder": str(self.folder)}
        return {**asdict(self), **changed}


def list_kept(installation: Installation) -> list[KeptTraining]:
    """All kept trainings, newest state first. Raises UnreachableError without the log."""
    found = _states(installation)
    annotations = read_annotations(installation, found)
    logged = logged_trainings(installation, found)
    kept = []
    for name, (folder, state) in found.items():
        annotation = annotations[name]
        last = last_evaluation(state.manifest.evaluations)
        total = resume_state.read_run_config(folder).get("num_steps")
        kept.append(
            KeptTraining(
                training_name=name,
                display_name=annotation.display_name,
                tags=annotation.tags,
                note=annotation.note,
                hidden=annotation.hidden,
                status=logged[name].status if name in logged else None,
                step=state.manifest.step,
                total_steps=total if isinstance(total, int) else state.manifest.step,
                success=None if last is None else last.success,
                saved_at=datetime.fromtimestamp(
                    (state.folder / resume_state.MANIFEST).stat().st_mtime, UTC
                ),
                folder=folder,
            )
        )
    return sorted(kept, key=lambda item: (item.saved_at, item.training_name), reverse=True)


@dataclass(frozen=True, slots=True)
class LoggedTraining:
    """What the log records of a training."""

    status: str
    """See `KeptTraining.status`."""
    process_began_at: datetime
    """When its last process claimed it."""


def logged_trainings(
    installation: Installation, names: Collection[str]
) -> dict[str, LoggedTraining]:
    """The trainings of `names` that are in the log. Raises UnreachableError without the log."""
    if not names or is_unused(installation):
        return {}
    subjects = {name: stream("training", ids.training_id(name)) for name in names}
    try:
        histories = read_back(installation, list(subjects.values()), timeout_s=LOG_TIMEOUT_S)
    except MismatchError:
        if len(names) == 1:
            return {}
        # One training's record is unreadable: read the others one by one.
        logged = dict[str, LoggedTraining]()
        for name in names:
            logged |= logged_trainings(installation, [name])
        return logged
    return {
        name: _logged(histories[subject])
        for name, subject in subjects.items()
        if histories[subject].events
    }


def _logged(history: StreamHistory) -> LoggedTraining:
    owner = stream_owner(history.subject)
    status = history.statuses.get(("training", owner), "pending")
    newest = history.events[-1].envelope
    is_silent = datetime.now(UTC) - newest.time > timedelta(seconds=TAKEOVER_AFTER_S)
    began_at = min(
        event.envelope.time for event in history.events if event.envelope.epoch == newest.epoch
    )
    return LoggedTraining(INTERRUPTED if is_silent and status not in ENDED else status, began_at)


def _states(installation: Installation) -> dict[str, tuple[Path, resume_state.SavedState]]:
    """Training -> its folder and its newest state; skips folders of anything else."""
    runs = installation.runs_dir
    found = {}
    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        try:
            name = check_training_name(path.name)
            folder = find_run_folder(installation, name)
            states = resume_state.find_states(folder)
        except (ValueError, OSError, CuaTrainError):
            continue
        if states and (folder / "config.json").is_file():
            found[name] = (folder, states[0])
    return found
