"""A step's rollouts as files to read: the first groups as text, and all sessions of SQL agents.

    <run>/groups/generation-0/step-000003.txt
    <run>/sessions/generation-0/step-000003.jsonl

Everything in them is in the log too; a full disk costs files, never the run.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from producer.durable import write_durably
from producer.rollouts.plan import GroupOutcome, RolloutResult

logger = logging.getLogger(__name__)


def write_sessions(
    run_folder: Path, generation: int, step: int, outcomes: Sequence[GroupOutcome]
) -> None:
    """Write a line for each session of a step."""
    path = run_folder / "sessions" / f"generation-{generation}" / f"step-{step:06d}.jsonl"
    lines = [_session(result) for outcome in outcomes for result in outcome.results]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, "".join(json.dumps(line) + "\n" for line in lines))
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)


def _session(result: RolloutResult) -> dict[str, object]:
    """`words`: what the database answered before each of the agent's turns but the first."""
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
    """Write these groups' rollouts; `advantages` by rollout name, of those that have one."""
    path = run_folder / "groups" / f"generation-{generation}" / f"step-{step:06d}.txt"
    text = "\n".join(_group(outcome, advantages) for outcome in outcomes)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text)
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)


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
    # Model output: control characters would act on the reader's terminal.
    turns = [f"  {turn}. {_printable(text)}" for turn, text in enumerate(result.responses, start=1)]
    return [head, *turns]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
