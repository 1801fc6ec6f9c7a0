"""The trainings whose states a home keeps, with what people said of them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from producer.errors import CuaTrainError
from producer.resume import resume_state
from producer.resume.run_folder import find_run_folder
from producer.training.annotations import read_annotations
from producer.training.summary import last_evaluation
from producer.training_name import check_training_name
from schemas.installation import Installation


@dataclass(frozen=True, slots=True)
class KeptTraining:
    """One training."""

    training_name: str
    display_name: str | None
    """None: it was not renamed."""
    tags: tuple[str, ...]
    note: str | None
    hidden: bool
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
                step=state.manifest.step,
                total_steps=total if isinstance(total, int) else state.manifest.step,
                success=None if last is None else last.success,
                saved_at=datetime.fromtimestamp(
                    (state.folder / resume_state.MANIFEST).stat().st_mtime, UTC
                ),
                folder=folder,
            )
        )
    return sorted(kept, key=lambda one: (one.saved_at, one.training_name), reverse=True)


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
