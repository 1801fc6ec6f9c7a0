"""Standalone evaluations of text-to-SQL: execution accuracy, and best-of-N selection."""

import logging
import math
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from producer.errors import CuaTrainError
from producer.fine_tuning.named_policy import num_questions
from producer.process_rewards.best_of_n import BestOfN, Candidate, best_of_sizes
from producer.rollouts.plan import GroupOutcome
from producer.training.manual_evaluation import evaluate
from schemas.installation import Installation

logger = logging.getLogger(__name__)

DIFFICULTIES = ("easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of right answers, with one completion per question."""

    accuracy: float
    standard_error: float
    questions: int


@dataclass(frozen=True, slots=True)
class ExecutedAccuracy:
    """The result of an evaluation."""

    overall: Accuracy
    by_difficulty: dict[str, Accuracy]
    """Accuracy for `easy`, `medium` and `hard` questions, and `unknown` for unrated ones."""


@dataclass(frozen=True, slots=True)
class ChosenAccuracy:
    """The result of best-of-N selection."""

    questions: int
    completions: int
    """Completions per question."""
    sizes: tuple[BestOfN, ...]
    """Results for N = 1, 2, 4 ... and for all completions."""


def executed_accuracy(
    policy: dict[str, Any],
    source: dict[str, Any],
    *,
    installation: Installation,
    training_name: str | None = None,
    stop: threading.Event | None = None,
) -> ExecutedAccuracy:
    """Ask every question once. Raises as `evaluate` does.

    `policy` holds configuration fields; without a temperature, sampling is greedy.
    """
    groups: list[GroupOutcome] = []
    evaluate(
        _given({"eval_temperature": 0.0, **policy}, source, 1),
        training_name=training_name,
        installation=installation,
        stop=stop,
        on_outcomes=groups.extend,
    )
    return accuracy_of(groups)


def accuracy_of(groups: Sequence[GroupOutcome]) -> ExecutedAccuracy:
    """Shares over the answers that were judged; a warning counts the questions without one."""
    if left := sum(not group.results for group in groups):
        logger.warning("%d questions are left out: their answers could not be judged", left)
    rights: dict[str, list[bool]] = defaultdict(list)
    for group in groups:
        rights[group.plan.stated.task.difficulty or "unknown"] += [
            result.success for result in group.results
        ]
    return ExecutedAccuracy(
        _accuracy([item for own in rights.values() for item in own]),
        {name: _accuracy(rights[name]) for name in (*DIFFICULTIES, "unknown") if rights[name]},
    )


def chosen_accuracy(
    policy: dict[str, Any],
    source: dict[str, Any],
    *,
    n: int,
    reward_model: Path,
    installation: Installation,
    training_name: str | None = None,
    stop: threading.Event | None = None,
) -> ChosenAccuracy:
    """Ask every question `n` times and choose by step scores. Everything is recorded as events.

    Raises CuaTrainError if no question has all of its completions.
    """
    groups: list[GroupOutcome] = []
    given = {
        "eval_temperature": 1.0,
        **policy,
        "process_reward_model": reward_model,
        # This evaluation reads the scores of completions; nothing is trained.
        "baseline_only": True,
    }
    evaluate(
        _given(given, source, n),
        training_name=training_name,
        installation=installation,
        stop=stop,
        on_outcomes=groups.extend,
    )
    return chosen_of(groups, n)


def chosen_of(groups: Sequence[GroupOutcome], n: int) -> ChosenAccuracy:
    """Best-of-N shares over the groups with `n` completions. Raises CuaTrainError without one."""
    whole = [group for group in groups if len(group.results) == n]
    if left := len(groups) - len(whole):
        logger.warning("%d questions are left out: some of their completions failed", left)
    if not whole:
        message = f"no question has {n} completions; see error_message of the rollouts"
        raise CuaTrainError(message)
    questions = [
        [
            Candidate(tuple(step.score for step in result.scored_steps), result.success)
            for result in sorted(group.results, key=lambda result: result.plan.env_index)
        ]
        for group in whole
    ]
    return ChosenAccuracy(len(questions), n, tuple(best_of_sizes(questions)))


def _given(policy: dict[str, Any], source: dict[str, Any], each: int) -> dict[str, Any]:
    return {
        "environment": "text_to_sql",
        "max_turns": 1,
        "eval_episodes": each * num_questions(source),
        **policy,
        "eval_tasks": source,
        # Only these are evaluated. The policy has no other default tasks.
        "tasks": source,
    }


def _accuracy(rights: Sequence[bool]) -> Accuracy:
    share = sum(rights) / len(rights)
    return Accuracy(share, math.sqrt(share * (1 - share) / len(rights)), len(rights))
