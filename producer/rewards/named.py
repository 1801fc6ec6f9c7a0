"""What a reward may know about an episode, and the named rewards. Formulas: docs/losses.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from producer.rewards.user_code import RewardError, finite_number
from schemas.rollout import RolloutFinished

ATTEMPTED: Final = 0.1
TURN, ERROR, TIME_OUT = 0.02, 0.1, 0.5
"""Deductions in `efficiency`: per turn, per error of any kind, and for running out of turns or
time."""
PARSE, TOOL_NAME, TOOL_ARG = -2.0, -1.8, -1.5
"""Base values of `comprehensive` for an unsolved episode, chosen by its worst error."""
WRONG, UNFINISHED = -0.5, -1.0
"""Base values for an unsolved episode without errors: ended by the agent, or not ended."""
CORRECT, INCORRECT, TIMEOUT = 1.0, -0.1, -0.3
"""Defaults of `session`: right and completed; everything else; no round was left."""
REPEAT: Final = 0.05
LOWEST, HIGHEST = -2.0, 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an episode. A reward is a function of nothing else."""

    success: bool
    """Whether the validator passed."""
    num_turns: int
    max_turns: int
    """Maximum number of turns the agent could take."""
    attempted_completion: bool
    """Whether the agent ended the episode itself."""
    reported_success: bool | None
    """The agent's own claim of success; None if it did not end the episode."""
    ran_out_of_turns: bool
    ran_out_of_time: bool
    parse_errors: int
    """Number of completions that could not be parsed."""
    tool_name_errors: int
    """Number of actions whose tool does not exist."""
    tool_arg_errors: int
    """Number of actions whose arguments do not fit their tool."""
    runtime_errors: int
    """Number of actions that the device refused."""
    num_actions: int
    repeated_actions: int
    """Number of actions equal to the one before."""
    num_tokens: int
    """Number of completion tokens; 0 for a scripted policy."""
    turn_first_success: int | None
    """The turn after which the validator first passed; None if it never did or was not asked."""
    task_id: str

    @property
    def num_parse_errors(self) -> int:
        """Number of actions that the codec could not parse, for any reason."""
        return self.parse_errors + self.tool_name_errors + self.tool_arg_errors

    @property
    def timed_out(self) -> bool:
        """Whether the episode ended because it ran out of turns or time."""
        return self.ran_out_of_turns or self.ran_out_of_time


def outcome_of(finished: RolloutFinished, *, max_turns: int, task_id: str) -> Outcome:
    """Build the outcome of an episode from its event."""
    is_ended = finished.attempted_completion
    return Outcome(
        success=finished.task_success,
        num_turns=finished.num_turns,
        max_turns=max_turns,
        attempted_completion=is_ended,
        reported_success=finished.agent_reported_success,
        ran_out_of_turns=finished.ran_out_of_turns,
        ran_out_of_time=not is_ended and not finished.ran_out_of_turns,
        parse_errors=finished.parse_errors,
        tool_name_errors=finished.tool_name_errors,
        tool_arg_errors=finished.tool_arg_errors,
        runtime_errors=finished.runtime_errors,
        num_actions=finished.num_total_actions,
        repeated_actions=finished.consecutive_repeated_actions,
        num_tokens=finished.num_tokens,
        turn_first_success=finished.turn_first_success,
        task_id=task_id,
    )


Reward = Callable[[Outcome], float]


def score(
    reward: Reward, outcome: Outcome, *, turn_cost: float = 0.0, parse_error_cost: float = 0.0
) -> float:
    """The reward minus `turn_cost` per turn and `parse_error_cost` per error.

    Raises RewardError.
    """
    try:
        value = reward(outcome)
    except RewardError:
        raise
    except Exception as error:
        message = f"the reward raised {type(error).__name__}: {error}"
        raise RewardError(message) from error
    number = finite_number(value, "the reward")
    return number - turn_cost * outcome.num_turns - parse_error_cost * outcome.num_parse_errors


def binary(outcome: Outcome) -> float:
    """1 if the validator passed, else 0."""
    return float(outcome.success)


def completion(outcome: Outcome) -> float:
    """1 if solved; 0.1 if the agent ended the episode itself; else 0."""
    return 1.0 if outcome.success else ATTEMPTED * outcome.attempted_completion


def efficiency(outcome: Outcome) -> float:
    """`binary` minus 0.02 per turn, 0.1 per error, and 0.5 for running out of turns or time."""
    return (
        binary(outcome)
        - TURN * outcome.num_turns
        - ERROR * _num_errors(outcome)
        - TIME_OUT * outcome.timed_out
    )


def session(
    outcome: Outcome,
    correct: float = CORRECT,
    incorrect: float = INCORRECT,
    timeout: float = TIMEOUT,
) -> float:
    """Agent-PEFT's reward: `correct` if the task is solved and the agent ended the episode.

    It is `timeout` if the rounds ran out and `incorrect` otherwise: for a wrong answer, or a
    completion that was neither an operation nor an answer. A table in the right state does not
    count as correct if the agent never answered.
    """
    if outcome.success and outcome.attempted_completion:
        return correct
    is_cut = outcome.timed_out and not outcome.num_parse_errors
    return timeout if is_cut else incorrect


def comprehensive(outcome: Outcome) -> float:
    """A reward in [-2, 3]: a base that depends on the outcome, minus 0.05 per repeated action.

    Solved: 1, plus 1 because it is validated, plus the share of turns left, minus 0.1 per error.
    Unsolved: -2, -1.8 or -1.5 for parse, tool-name or tool-argument errors, whichever is worst;
    without errors, -0.5 if the agent ended the episode, else -1.
    """
    value = _solved(outcome) if outcome.success else _unsolved(outcome)
    return min(HIGHEST, max(LOWEST, value - REPEAT * outcome.repeated_actions))


REWARDS: Final[dict[str, Reward]] = {
    "binary": binary,
    "completion": completion,
    "efficiency": efficiency,
    "comprehensive": comprehensive,
}


def _num_errors(outcome: Outcome) -> int:
    return outcome.num_parse_errors + outcome.runtime_errors


def _solved(outcome: Outcome) -> float:
    return 2.0 + (1 - outcome.num_turns / outcome.max_turns) - ERROR * _num_errors(outcome)


def _unsolved(outcome: Outcome) -> float:
    if outcome.parse_errors:
        return PARSE
    if outcome.tool_name_errors:
        return TOOL_NAME
    if outcome.tool_arg_errors:
        return TOOL_ARG
    return WRONG if outcome.attempted_completion else UNFINISHED
