"""Labelled steps for a process reward model: sampled, completed and executed as rollouts.

A labelling is a training that only evaluates. Every completion is a rollout, and its labels are
events. The output is read back from the log, so a killed labelling can continue, and a complete one
can be written again.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from producer.config import RunConfig, read_config
from producer.durable import write_durably
from producer.emit import Emitter
from producer.environments.environment import EnvironmentFailedError
from producer.errors import NotFoundError, UsageError
from producer.fine_tuning.named_policy import num_questions, questions_of
from producer.resume.recorded_training import read_recorded_training
from producer.resume.run_folder import find_run_folder
from producer.resume.training_history import TrainingHistory
from producer.rollouts.step_labels import SCORER
from producer.supervised.sequences import step_texts
from producer.task import Task
from producer.tasks.sources import load_tasks
from producer.tasks.statements import task_facts
from producer.training.preflight import check_writable
from producer.training.rubric import ShowSteps, as_written, showing_results
from producer.training.run import run, utc_now
from producer.training_name import new_training_name
from schemas import ids
from schemas.catalogue import stream_kind
from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.installation import Installation
from schemas.rollout import RolloutCreated, RolloutFinished

logger = logging.getLogger(__name__)

MARKER: Final = " и"
"""The default step marker of a process reward model (`placeholder_token`)."""
MAX_TURN_S: Final = 86_400.0
"""Long, because labels are sampled while the environment judges, one prefix after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSteps:
    """The result of a labelling."""

    training_name: str
    training_id: str
    questions: int
    completions: int
    """Number of completions with labels."""
    steps: int
    correct: float | None
    """Share of right completions; None if there were none."""
    mean_label: float | None
    """Mean over all steps."""
    output: str


def label_steps(
    *,
    model_name: str,
    data: Path,
    skip_invalid: bool = False,
    output: Path,
    installation: Installation,
    completions_per_question: int,
    step_completions: int,
    limit: int | None = None,
    training_name: str | None = None,
    max_tokens: int = 512,
    temperature: float = 1.0,
    max_concurrent: int = 16,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "auto",
    results: bool = False,
    stop: threading.Event | None = None,
    on_open: Callable[[str, Path], None] | None = None,
    takeover: bool = False,
) -> LabelledSteps:
    """Sample, label and write `output`, a training file for `cua-train sql reward-model`.

    With `results`, each step is followed by its result, for `reward_model_sees_results`. Raises
    UsageError and the other errors of `producer.errors`, and StopRequestedError after `stop` was
    set.
    """
    if output.is_dir():
        message = f"output: {output} is a folder; name a file"
        raise UsageError(message)
    check_writable(output.parent, "output")
    source = questions_of(data, "train", limit, skip_invalid=skip_invalid)
    name = training_name or new_training_name(f"{Path(model_name).name}-steps", utc_now())
    config = read_config(
        {
            "training_name": name,
            "model_name": model_name,
            "environment": "text_to_sql",
            "tasks": source,
            "eval_tasks": source,
            "baseline_only": True,
            "eval_episodes": num_questions(source) * completions_per_question,
            "eval_temperature": temperature,
            "temperature": temperature,
            "step_completions": step_completions,
            "max_tokens": max_tokens,
            "max_turns": 1,
            "max_concurrent_rollouts": max_concurrent,
            "max_turn_time_seconds": MAX_TURN_S,
            "max_task_time_seconds": MAX_TURN_S,
            "behavior_if_log_dir_exists": "resume",
            "device": device,
            "dtype": dtype,
            "seed": seed,
        }
    )
    run(config, installation=installation, stop=stop, on_open=on_open, takeover=takeover)
    show = showing_results(config.tasks) if results else as_written
    try:
        return _write_labels(config, name, installation, output, show)
    except EnvironmentFailedError as error:
        message = f"data_path: {error}"
        raise NotFoundError(message) from error


def _write_labels(
    config: RunConfig, name: str, installation: Installation, output: Path, show: ShowSteps
) -> LabelledSteps:
    """Read a finished labelling's completions from the log and write them as examples."""
    tasks = {task_facts(task)[0].id: task for task in load_tasks(config.tasks)}
    with Emitter.open(installation, clock=utc_now) as emitter:
        recorded = read_recorded_training(emitter, name, find_run_folder(installation, name))
        history = recorded.read_whole(emitter.log).history
    rows: list[dict[str, JsonValue]] = []
    labels: list[float] = []
    questions: set[UUID] = set()
    num_right = 0
    labelled = without_marker(list(_labelled(history)), tasks)
    numbers = {task_id: number for number, task_id in enumerate(tasks)}
    for created, completion in sorted(
        labelled, key=lambda item: (numbers[item[0].task_id], item[0].env_index, item[0].attempt)
    ):
        task = tasks[created.task_id]
        assert task.entry is not None  # noqa: S101  # tasks of this source have one
        steps = [step.text for step in completion.scored.steps]
        texts = step_texts(task.description, show(task, steps))
        own = [step.score for step in completion.scored.steps]
        labels += own
        questions.add(created.task_id)
        num_right += completion.executed.outcome == "correct"
        rows.append(
            {
                "question_id": task.entry.entry_id,
                "db_id": task.entry.database,
                "prompt": task.description,
                "steps": [*steps],
                "input": "".join(f"{text}{MARKER}" for text in texts),
                "label": [*own],
                "outcome": completion.executed.outcome,
            }
        )
    write_durably(output, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return LabelledSteps(
        training_name=name,
        training_id=str(ids.training_id(name)),
        questions=len(questions),
        completions=len(rows),
        steps=len(labels),
        correct=num_right / len(rows) if rows else None,
        mean_label=sum(labels) / len(labels) if labels else None,
        output=str(output),
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """What was recorded of one answer."""

    executed: CompletionExecuted
    scored: CompletionStepsScored


def without_marker(
    labelled: list[tuple[RolloutCreated, Completion]], tasks: Mapping[UUID, Task]
) -> list[tuple[RolloutCreated, Completion]]:
    """Those whose steps' markers can be told from their text; a warning counts the others."""
    kept = [
        (created, completion)
        for created, completion in labelled
        if MARKER not in tasks[created.task_id].description
        and not any(MARKER in step.text for step in completion.scored.steps)
    ]
    if len(kept) < len(labelled):
        logger.warning(
            "%d of %d answers are left out: they or their prompts contain the step marker %r",
            *(len(labelled) - len(kept), len(labelled), MARKER),
        )
    return kept


def _labelled(history: TrainingHistory) -> Iterator[tuple[RolloutCreated, Completion]]:
    """Every finished rollout with labels."""
    for subject, rollout in history.streams.items():
        if stream_kind(subject) != "rollout" or not rollout.events:
            continue
        payloads = [event.payload for event in rollout.events]
        created = payloads[0]
        scored = [
            payload
            for payload in payloads
            if isinstance(payload, CompletionStepsScored) and payload.scorer == SCORER
        ]
        executed = [payload for payload in payloads if isinstance(payload, CompletionExecuted)]
        is_finished = any(isinstance(payload, RolloutFinished) for payload in payloads)
        if isinstance(created, RolloutCreated) and scored and executed and is_finished:
            yield created, Completion(executed[0], scored[0])
