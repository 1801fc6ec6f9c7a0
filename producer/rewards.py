"""From an episode's outcome to a number: binary by default, with costs that a preset may set."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reward may depend on."""

    success: bool
    num_turns: int
    num_parse_errors: int
    """Actions that could not be understood, whatever the reason."""


def binary_reward(
    outcome: Outcome, *, turn_cost: float = 0.0, parse_error_cost: float = 0.0
) -> float:
    """1 for a solved task, 0 otherwise, less the costs of turns and of actions that cannot be understood."""
    return (
        float(outcome.success)
        - turn_cost * outcome.num_turns
        - parse_error_cost * outcome.num_parse_errors
    )
