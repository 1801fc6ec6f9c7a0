"""What a supervised training came to: the last line of `cua-train sql sft --json`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from producer.fine_tuning.settings import FineTuningConfig
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.training.run_files import METRICS
from schemas import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuningSummary:
    """Figures of held-out examples are None where none were held out."""

    training_name: str
    training_id: str
    objective: str
    status: str
    """completed."""
    steps: int
    epochs: int
    examples: int | None
    """Trained on; None: it was complete already."""
    held_out: int | None
    left_out: int | None
    """Longer than `max_length`."""
    train_loss_first: float | None
    """Of the first step; None: the file of figures was lost."""
    train_loss_last: float | None
    loss_before: float | None
    loss_after: float | None
    accuracy_before: float | None
    """Over held-out tokens, steps or pairs."""
    accuracy_after: float | None
    auc_before: float | None
    auc_after: float | None
    seconds: float
    """Of this process."""
    generation: int
    log_path: str
    output_dir: str


def summarise(
    manifest: Manifest,
    config: FineTuningConfig,
    *,
    sizes: tuple[int, int, int] | None,
    seconds: float,
    folder: Path,
    output: Path,
) -> FineTuningSummary:
    """`sizes`: examples trained on, held out, left out."""
    before = next((evaluation for evaluation in manifest.evaluations if evaluation.step == 0), None)
    after = next(
        (evaluation for evaluation in manifest.evaluations if evaluation.step == manifest.step),
        None,
    )
    examples, held_out, left_out = sizes or (None, None, None)
    losses = _train_losses(folder)
    return FineTuningSummary(
        training_name=manifest.training_name,
        training_id=str(ids.training_id(manifest.training_name)),
        objective=config.objective,
        status="completed",
        steps=manifest.step,
        epochs=config.epochs,
        examples=examples,
        held_out=held_out,
        left_out=left_out,
        train_loss_first=losses[0] if losses else None,
        train_loss_last=losses[-1] if losses else None,
        loss_before=_metric(before, "loss"),
        loss_after=_metric(after, "loss"),
        accuracy_before=_metric(before, "accuracy"),
        accuracy_after=_metric(after, "accuracy"),
        auc_before=_metric(before, "auc"),
        auc_after=_metric(after, "auc"),
        seconds=round(seconds, 3),
        generation=manifest.generation,
        log_path=str(folder),
        output_dir=str(output),
    )


def _metric(summary: EvaluationSummary | None, name: str) -> float | None:
    return None if summary is None else summary.metrics.get(f"test/{name}")


def _train_losses(folder: Path) -> list[float]:
    """Of every step, from the file of figures."""
    try:
        lines: list[dict[str, Any]] = [
            json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()
        ]
    except (OSError, ValueError):
        return []
    return [line["optim/loss"] for line in lines if line.get("optim/loss") is not None]
