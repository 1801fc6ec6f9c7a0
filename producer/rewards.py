"""Rewards: binary success, less optional costs per turn and per parse error."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of an episode that its reward depends on."""

    success: bool
    num_turns: int
    num_parse_errors: int
    """Actions that the codec could not parse, for any reason."""


def binary_reward(
    outcome: Outcome, *, turn_cost: float = 0.0, parse_error_cost: float = 0.0
) -> float:
    """1 for success, 0 otherwise, less `turn_cost` per turn and `parse_error_cost` per error."""
    return (
        float(outcome.success)
        - turn_cost * outcome.num_turns
        - parse_error_cost * outcome.num_parse_errors
    )
