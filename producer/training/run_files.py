"""Files of a run's folder for people and scripts: metrics.jsonl, checkpoints.jsonl, logs/train.log.

Derived from the log: opening them writes them again, so that what a killed process left out, or a
new generation superseded, is mended. A full disk costs lines, never the run.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from producer.durable import write_durably
from producer.resume.lineage import recorded_lineage
from producer.resume.open_training import OpenedTraining
from producer.resume.resume_state import EvaluationSummary, pending_from_json
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.evaluation_text import metric_name
from schemas.step import StepFinished

logger = logging.getLogger(__name__)

METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
LOG_LINES = "logs/train.log"


class RunFiles:
    """Appends lines as steps, evaluations and checkpoints come. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._has_warned = False

    def rewrite(
        self, payloads: Iterable[Payload], evaluations: Sequence[EvaluationSummary]
    ) -> None:
        """Write what was recorded so far. `payloads`: the training's own stream."""
        lineage = recorded_lineage(payloads)
        lines = [
            *(
                (step.number, 0, step_line(step.number, step.finished))
                for step in lineage.steps.values()
            ),
            *((evaluation.step, 1, evaluation_line(evaluation)) for evaluation in evaluations),
        ]
        ordered = [line for *_, line in sorted(lines, key=lambda line: line[:2])]
        self._replace(METRICS, ordered)
        self._replace(
            CHECKPOINTS, [checkpoint_line(checkpoint) for checkpoint in lineage.checkpoints]
        )

    def step(self, number: int, finished: StepFinished) -> None:
        """A step has finished."""
        self._append(METRICS, step_line(number, finished))

    def evaluation(self, summary: EvaluationSummary) -> None:
        """An evaluation has finished."""
        self._append(METRICS, evaluation_line(summary))

    def checkpoint(self, saved: CheckpointSaved) -> None:
        """A checkpoint was saved."""
        self._append(CHECKPOINTS, checkpoint_line(saved))

    def _replace(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        try:
            write_durably(self._folder / name, "".join(_text(line) for line in lines))
        except OSError as error:
            self._warn(name, error)

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        try:
            with (self._folder / name).open("a", encoding="utf-8") as file:
                file.write(_text(line))
        except OSError as error:
            self._warn(name, error)

    def _warn(self, name: str, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s cannot be written (%s); the log has everything, and continuing the training"
                " writes the file again",
                *(self._folder / name, error.strerror),
            )


def open_run_files(folder: Path, opened: OpenedTraining[Any]) -> RunFiles:
    """The files of a training that this process owns, with what was recorded until now."""
    files, plan = RunFiles(folder), opened.plan
    recorded = opened.history.payloads_of(opened.stream.subject)
    replayed = [pending_from_json(item) for item in plan.manifest.pending]
    files.rewrite([*recorded, *replayed, plan.first], plan.manifest.evaluations)
    return files


def step_line(number: int, finished: StepFinished) -> dict[str, Any]:
    """A step's line of metrics.jsonl; `step` counts from 1, `progress/batch` from 0."""
    return {
        "step": number,
        **finished.metrics,
        "optim/loss": finished.loss,
        "optim/gradient_norm": finished.policy_gradient_norm,
        "env/all/reward/std": finished.reward_std,
    }


def evaluation_line(summary: EvaluationSummary) -> dict[str, Any]:
    """An evaluation's line of metrics.jsonl."""
    measured = {
        **summary.metrics,
        "success": summary.success,
        "standard_error": summary.standard_error,
        "temperature": summary.temperature,
        "split": summary.split,
        "num_tasks": summary.num_tasks,
        "task_source": summary.task_source,
        **{f"by_task/{task}": success for task, success in summary.by_task.items()},
    }
    return {
        "step": summary.step,
        "evaluation": summary.label,
        **{metric_name(name, summary.temperature): value for name, value in measured.items()},
    }


def checkpoint_line(saved: CheckpointSaved) -> dict[str, Any]:
    """A checkpoint's line of checkpoints.jsonl."""
    return {
        "name": f"{saved.step:06d}",
        "batch": saved.step,
        "generation": saved.generation,
        "sampler_path": saved.path,
        "adapter_sha256": saved.adapter_sha256,
    }


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps({name: _finite(value) for name, value in line.items()}) + "\n"


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def log_file(folder: Path) -> Iterator[None]:
    """Append what this process logs to the folder's log file, with the time of each line."""
    path = folder / LOG_LINES
    try:
        path.parent.mkdir(exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8", delay=False)
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)
        yield
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # noqa: ARG005  # a full disk
    ours = logging.getLogger("producer")
    ours.addHandler(handler)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        handler.close()
