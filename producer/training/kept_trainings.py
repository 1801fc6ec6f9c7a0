"""The trainings whose states a home keeps, with what people said of them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from producer.errors import CuaTrainError, MismatchError
from producer.log.reading_back import read_back
from producer.log.stream_history import StreamHistory
from producer.resume import resume_state
from producer.resume.active_writer import ENDED, TAKEOVER_AFTER_S
from producer.resume.run_folder import find_run_folder
from producer.training.annotations import LOG_TIMEOUT_S, read_annotations
from producer.training.preflight import is_unused
from producer.training.summary import last_evaluation
from producer.training_name import check_training_name
from schemas import ids
from schemas.catalogue import stream, stream_owner
from schemas.installation import Installation

INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class KeptTraining:
    """One training."""

    training_name: str
    display_name: str | None
    """None: it was not renamed."""
    tags: tuple[str, ...]
    note: str | None
    hidden: bool
    status: str | None
    """Of the training in the log; `interrupted`: it has not ended, and its process no longer beats.
    None: the log does not have it, or has a record of it that cannot be read."""
    step: int
    """Finished steps."""
    total_steps: int
    success: float | None
    """Of its last evaluation; None before the first."""
    saved_at: datetime
    """Of its newest state."""
    folder: Path

    def as_json(self) -> dict[str, JsonValue]:
        """For scripts."""
        return {
            "training_name": self.training_name,
            "display_name": self.display_name,
            "tags": list(self.tags),
            "note": self.note,
            "hidden": self.hidden,
            "status": self.status,
            "step": self.step,
            "total_steps": self.total_steps,
            "success": self.success,
            "saved_at": self.saved_at.isoformat(timespec="seconds"),
            "folder": str(self.folder),
        }


def list_kept(installation: Installation) -> list[KeptTraining]:
    """Newest state first. UnreachableError when the log is away."""
    found = _states(installation)
    annotations = read_annotations(installation, found)
    statuses = _statuses(installation, found)
    kept = []
    for name, (folder, state) in found.items():
        said = annotations[name]
        last = last_evaluation(state.manifest.evaluations)
        total = resume_state.read_run_config(folder).get("num_steps")
        kept.append(
            KeptTraining(
                training_name=name,
                display_name=said.display_name,
                tags=said.tags,
                note=said.note,
                hidden=said.hidden,
                status=statuses.get(name),
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


def _statuses(installation: Installation, names: Collection[str]) -> dict[str, str]:
    """The status of each training that the log has."""
    if not names or is_unused(installation):
        return {}
    subjects = {name: stream("training", ids.training_id(name)) for name in names}
    try:
        histories = read_back(installation, list(subjects.values()), timeout_s=LOG_TIMEOUT_S)
    except MismatchError:
        if len(names) == 1:
            return {}
        # One training's record cannot be read: the others have their status.
        return {
            name: one for each in names for name, one in _statuses(installation, [each]).items()
        }
    return {
        name: _status(histories[subject])
        for name, subject in subjects.items()
        if histories[subject].events
    }


def _status(history: StreamHistory) -> str:
    owner = stream_owner(history.subject)
    status = history.statuses.get(("training", owner), "pending")
    age = datetime.now(UTC) - history.events[-1].envelope.time
    is_silent = age > timedelta(seconds=TAKEOVER_AFTER_S)
    return INTERRUPTED if is_silent and status not in ENDED else status


def _states(installation: Installation) -> dict[str, tuple[Path, resume_state.SavedState]]:
    """Training -> its folder and its newest state; folders of something else are passed over."""
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
