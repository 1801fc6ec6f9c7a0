"""What the policy said in a step's first groups, as text files to read over.

    <run>/groups/generation-0/step-000003.txt

Everything in them is in the log too; a full disk costs files, never the run.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from producer.durable import write_durably
from producer.rollouts.plan import GroupOutcome, RolloutResult

logger = logging.getLogger(__name__)


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
    said = [f"  {turn}. {_printable(text)}" for turn, text in enumerate(result.responses, start=1)]
    return [head, *said]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
