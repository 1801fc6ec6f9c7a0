"""The kept checkpoints of a training: what the log recorded, and whether it still holds."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

from producer.emit import Emitter
from producer.errors import MismatchError, NotFoundError
from producer.policy.adapter_settings import ALL_WEIGHTS, WEIGHTS
from producer.policy.remote_checkpoint import REMOTE
from producer.policy.scripted_learner import STATE
from producer.resume.recorded_training import RecordedTraining, read_recorded_training
from producer.resume.resume_state import EvaluationSummary, checkpoint_folder
from producer.resume.run_folder import find_run_folder
from schemas.checkpoint import CheckpointSaved
from schemas.installation import Installation

Verdict = Literal["ok", "changed", "missing"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A kept checkpoint."""

    training_name: str
    generation: int
    step: int
    policy_version: int
    saved_at: datetime
    folder: Path
    """Its current folder, or where it was saved if it no longer exists."""
    adapter_sha256: str
    """The sha256 recorded when it was saved."""
    verified: Verdict
    """Whether its weights still have that sha256."""
    success: float | None
    """Share of solved episodes in the newest evaluation at this step; None if not evaluated."""


def list_checkpoints(
    installation: Installation, emitter: Emitter, training_name: str
) -> list[Checkpoint]:
    """The training's checkpoints, oldest first; empty if the log knows none.

    Reads only. Raises UnreachableError if the log cannot be reached.
    """
    folder = find_run_folder(installation, training_name)
    recorded = read_recorded_training(emitter, training_name, folder)
    return [
        _checkpoint(recorded, folder, event.payload, event.envelope.time)
        for event in recorded.stream.events
        if isinstance(event.payload, CheckpointSaved)
    ]


def choose_checkpoint(
    checkpoints: list[Checkpoint], training_name: str, step: int | None
) -> Checkpoint:
    """The newest checkpoint, or the newest of `step`.

    Raises NotFoundError if there is none, MismatchError if its weights were changed.
    """
    found = [checkpoint for checkpoint in checkpoints if step in {None, checkpoint.step}]
    if not found:
        steps = ", ".join(str(checkpoint.step) for checkpoint in checkpoints)
        of_step = "" if step is None else f" of step {step}"
        known = f"; it has those of step {steps}" if checkpoints else ""
        message = f"training {training_name!r} has no checkpoint{of_step}{known}"
        raise NotFoundError(message)
    chosen = found[-1]
    check_verified(chosen)
    return chosen


def check_verified(checkpoint: Checkpoint) -> None:
    """Raises NotFoundError if its files are gone, MismatchError if its weights have changed."""
    if checkpoint.verified == "missing":
        message = f"the checkpoint of step {checkpoint.step}, {checkpoint.folder}, is gone"
        raise NotFoundError(
            message, ways=("run this on the host that saved it", "choose another --step")
        )
    if checkpoint.verified == "changed":
        message = (
            f"the weights in {checkpoint.folder} are not those that were saved (sha256"
            f" {checkpoint.adapter_sha256[:12]})"
        )
        raise MismatchError(message, ways=("restore them", "choose another --step"))


def weights_file(folder: Path) -> Path:
    """The file whose sha256 identifies a checkpoint: adapter, all weights, Tinker's, scripted."""
    found = (name for name in (WEIGHTS, ALL_WEIGHTS, REMOTE) if (folder / name).exists())
    return folder / next(found, STATE)


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file, read in chunks."""
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
    return digest.hexdigest()


def _checkpoint(
    recorded: RecordedTraining, run_folder: Path, saved: CheckpointSaved, saved_at: datetime
) -> Checkpoint:
    moved = checkpoint_folder(run_folder, saved.generation, saved.step)
    folder = moved if moved.is_dir() else Path(saved.path)
    weights = weights_file(folder)
    verified: Verdict = "missing"
    if weights.is_file():
        verified = "ok" if file_sha256(weights) == saved.adapter_sha256 else "changed"
    return Checkpoint(
        training_name=recorded.run_name,
        generation=saved.generation,
        step=saved.step,
        policy_version=saved.policy_version,
        saved_at=saved_at,
        folder=folder,
        adapter_sha256=saved.adapter_sha256,
        verified=verified,
        success=_success(recorded, saved),
    )


def _success(recorded: RecordedTraining, saved: CheckpointSaved) -> float | None:
    evaluations: tuple[EvaluationSummary, ...] = next(
        (
            state.manifest.evaluations
            for state in recorded.states
            if state.manifest.generation == saved.generation
        ),
        (),
    )
    at_step = [evaluation.success for evaluation in evaluations if evaluation.step == saved.step]
    return at_step[-1] if at_step else None
