"""Files of a run's folder for people and scripts. Everything in them is in the log too.

    <run>/metrics.jsonl, checkpoints.jsonl, logs/train.log
    <run>/groups/generation-0/step-000003.txt        the first groups of a step
    <run>/sessions/generation-0/step-000003.jsonl    all sessions of SQL agents

Opening them rewrites metrics and checkpoints, which repairs what a killed process left out or a new
generation superseded. If the disk is full, lines are lost, but the run continues.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from producer.durable import write_durably
from producer.log_lines import OURS
from producer.resume.open_training import OpenedTraining
from producer.resume.recorded_training import recorded_lineage
from producer.resume.resume_state import EvaluationSummary, pending_from_json
from producer.rollouts.plan import GroupOutcome, RolloutResult
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.evaluation_text import metric_name
from schemas.step import StepFinished

logger = logging.getLogger(__name__)

METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
LOG_LINES = "logs/train.log"


class RunFiles:
    """Appends lines for steps, evaluations and checkpoints. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._has_warned = False

    def rewrite(
        self, payloads: Iterable[Payload], evaluations: Sequence[EvaluationSummary]
    ) -> None:
        """Write what was recorded so far; `payloads` are those of the training's own stream."""
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
        """Append a finished step."""
        self._append(METRICS, step_line(number, finished))

    def evaluation(self, summary: EvaluationSummary) -> None:
        """Append a finished evaluation."""
        self._append(METRICS, evaluation_line(summary))

    def checkpoint(self, saved: CheckpointSaved) -> None:
        """Append a saved checkpoint."""
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
    """The files of a training that this process owns, with everything recorded so far."""
    files, plan = RunFiles(folder), opened.plan
    recorded = opened.history.own_payloads(Payload)
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
    """Replace NaN and infinity, which JSON lacks."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def log_file(folder: Path) -> Iterator[None]:
    """Append this process's log lines, with their times, to the folder's log file."""
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
    loggers = [logging.getLogger(name) for name in OURS]
    for ours in loggers:
        ours.addHandler(handler)
    try:
        yield
    finally:
        for ours in loggers:
            ours.removeHandler(handler)
        handler.close()


def write_sessions(
    run_folder: Path, generation: int, step: int, outcomes: Sequence[GroupOutcome]
) -> None:
    """Write one line per session of a step."""
    path = run_folder / "sessions" / f"generation-{generation}" / f"step-{step:06d}.jsonl"
    lines = [_session(result) for outcome in outcomes for result in outcome.results]
    _write(path, "".join(json.dumps(line) + "\n" for line in lines))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text)
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)


def _session(result: RolloutResult) -> dict[str, object]:
    """`words`: the database's answers before each of the agent's turns except the first."""
    task = result.plan.task
    return {
        "session": result.plan.name,
        "sample_index": task.task_id if task.entry is None else task.entry.entry_id,
        "instruction": task.description,
        "success": result.success,
        "reward": result.reward,
        "rounds": result.num_turns,
        "responses": list(result.responses),
        "words": list(result.words),
    }


def write_transcripts(
    run_folder: Path,
    generation: int,
    step: int,
    outcomes: Sequence[GroupOutcome],
    advantages: dict[str, float],
) -> None:
    """Write these groups' rollouts; `advantages` by rollout name, if a rollout has one."""
    path = run_folder / "groups" / f"generation-{generation}" / f"step-{step:06d}.txt"
    _write(path, "\n".join(_group(outcome, advantages) for outcome in outcomes))


def _group(outcome: GroupOutcome, advantages: dict[str, float]) -> str:
    task = outcome.plan.stated.task
    head = f"group {outcome.plan.num}: {task.task_id}{', failed' if outcome.is_failed else ''}"
    lines = [head, "=" * len(head), task.description, ""]
    for result in outcome.results:
        lines += [*_rollout(result, advantages.get(result.plan.name)), ""]
    return "\n".join(lines)


def _rollout(result: RolloutResult, advantage: float | None) -> list[str]:
    outcome = "solved" if result.success else "not solved"
    relative = "" if advantage is None else f", advantage {advantage:+.3f}"
    head = f"{result.plan.name}: {outcome}, reward {result.reward:.3f}{relative}"
    # Control characters in model output would affect the reader's terminal.
    turns = [f"  {turn}. {_printable(text)}" for turn, text in enumerate(result.responses, start=1)]
    return [head, *turns]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
