"""What a run came to: the last line of `cua-train run --json`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from producer.resume.resume_state import EvaluationSummary, Manifest
from schemas import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Success is None where nothing was evaluated."""

    training_name: str
    training_id: str
    status: str
    """completed, or skipped."""
    steps: int
    success_before: float | None
    success_after: float | None
    standard_error_before: float | None
    standard_error_after: float | None
    episodes: int
    """Of the last evaluation."""
    seconds: float
    """Of this process."""
    generation: int
    log_path: str
    leaked_devices: int = 0
    """Devices of this process that were not released and may still run."""


def summarise(manifest: Manifest, *, status: str, seconds: float, folder: Path) -> Summary:
    """The figures of the evaluation before the first step, and of the last one."""
    before, after = _before_and_after(manifest.evaluations)
    last = after or before
    return Summary(
        training_name=manifest.training_name,
        training_id=str(ids.training_id(manifest.training_name)),
        status=status,
        steps=manifest.step,
        success_before=before.success if before else None,
        success_after=after.success if after else None,
        standard_error_before=before.standard_error if before else None,
        standard_error_after=after.standard_error if after else None,
        episodes=last.episodes if last else 0,
        seconds=round(seconds, 3),
        generation=manifest.generation,
        log_path=str(folder),
    )


def _before_and_after(
    evaluations: Sequence[EvaluationSummary],
) -> tuple[EvaluationSummary | None, EvaluationSummary | None]:
    before = next((one for one in evaluations if one.step == 0), None)
    last = max(evaluations, key=lambda one: one.step, default=None)
    return before, None if last is before else last
