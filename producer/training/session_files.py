"""Sessions with a database as files of the run's folder, where Agent-PEFT keeps them.

    <run>/sessions/generation-0/step-000003.jsonl   a line for each session of a step

Everything in them is in the log too; a full disk costs files, never the run.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from producer.durable import write_durably
from producer.rollouts.plan import GroupOutcome, RolloutResult

logger = logging.getLogger(__name__)

SESSIONS = "sessions"


def write_sessions(
    run_folder: Path, generation: int, step: int, outcomes: Sequence[GroupOutcome]
) -> None:
    """Write the sessions of a step."""
    path = run_folder / SESSIONS / f"generation-{generation}" / f"step-{step:06d}.jsonl"
    lines = [_line(result) for outcome in outcomes for result in outcome.results]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, "".join(json.dumps(line) + "\n" for line in lines))
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)


def _line(result: RolloutResult) -> dict[str, object]:
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
