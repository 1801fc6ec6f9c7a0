"""Counts an episode's actions, repeats and errors for the finished rollout's event."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TypedDict

from schemas.turn import TakenAction


class ActionCounts(TypedDict):
    """Fields of RolloutFinished."""

    num_total_actions: int
    consecutive_repeated_actions: int
    parse_errors: int
    tool_name_errors: int
    tool_arg_errors: int
    runtime_errors: int


def count_actions(actions: Sequence[TakenAction]) -> ActionCounts:
    """Count the actions of all turns, given in order."""
    errors = Counter(action.error_type for action in actions)
    calls = [(action.tool_name, action.tool_args) for action in actions]
    return ActionCounts(
        num_total_actions=len(calls),
        consecutive_repeated_actions=sum(one == other for one, other in pairwise(calls)),
        parse_errors=errors["parse"],
        tool_name_errors=errors["tool_name"],
        tool_arg_errors=errors["tool_arg"],
        runtime_errors=errors["runtime"],
    )
