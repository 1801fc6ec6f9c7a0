"""What a reward may know of an episode, and the rewards by name. Formulas: docs/losses.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from producer.rewards.user_code import RewardError, finite_number
from schemas.rollout import RolloutFinished

ATTEMPTED: Final = 0.1
TURN, ERROR, TIME_OUT = 0.02, 0.1, 0.5
"""What `efficiency` takes off per turn, per error of any kind, and for running out."""
PARSE, TOOL_NAME, TOOL_ARG = -2.0, -1.8, -1.5
"""Base of `comprehensive` for an unsolved episode, by its worst error."""
WRONG, UNFINISHED = -0.5, -1.0
"""The same for one without errors: ended by the agent, or not."""
CORRECT, INCORRECT, TIMEOUT = 1.0, -0.1, -0.3
"""Of `session` by default: right and completed; no round was left; everything else."""
REPEAT: Final = 0.05
LOWEST, HIGHEST = -2.0, 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an episode. A reward is a function of it and of nothing else."""

    success: bool
    """The validator passed."""
    num_turns: int
    max_turns: int
    """Turns that the agent might take."""
    attempted_completion: bool
    """The agent ended the episode itself."""
    reported_success: bool | None
    """The agent's own claim; None when it did not end the episode."""
    ran_out_of_turns: bool
    ran_out_of_time: bool
    parse_errors: int
    """Completions that could not be parsed."""
    tool_name_errors: int
    """Actions whose tool does not exist."""
    tool_arg_errors: int
    """Actions whose arguments do not fit their tool."""
    runtime_errors: int
    """Actions that the device refused."""
    num_actions: int
    repeated_actions: int
    """Actions equal to the one before."""
    num_tokens: int
    """Completion tokens; 0 for a scripted policy."""
    turn_first_success: int | None
    """Turn after which the validator first passed; None: never, or not asked."""
    task_id: str

    @property
    def num_parse_errors(self) -> int:
        """Actions that the codec could not parse, for any reason."""
        return self.parse_errors + self.tool_name_errors + self.tool_arg_errors

    @property
    def timed_out(self) -> bool:
        """Turns or time ended the episode."""
        return self.ran_out_of_turns or self.ran_out_of_time


def outcome_of(finished: RolloutFinished, *, max_turns: int, task_id: str) -> Outcome:
    """The end of an episode as its event has it."""
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
    """The reward less `turn_cost` per turn and `parse_error_cost` per error. RewardError."""
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
    """1 if solved; 0.1 if the agent said that it was done; else 0."""
    return 1.0 if outcome.success else ATTEMPTED * outcome.attempted_completion


def efficiency(outcome: Outcome) -> float:
    """`binary` less 0.02 a turn, 0.1 an error, and 0.5 for running out of turns or time."""
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
    """Agent-PEFT's: `correct` if it is right and the agent ended it.

    `timeout` at the limit of rounds. `incorrect` otherwise: a wrong answer, or a completion that
    was neither operation nor answer. A table that is right although the agent never answered is
    not correct.
    """
    if outcome.success and outcome.attempted_completion:
        return correct
    is_cut = outcome.timed_out and not outcome.num_parse_errors
    return timeout if is_cut else incorrect


def comprehensive(outcome: Outcome) -> float:
    """In [-2, 3]; the base is that of the outcome, 0.05 off for every repeated action.

    Solved: 1, 1 more because it is validated, and the share of turns that were left; less 0.1 an
    error. Unsolved: -2, -1.8 or -1.5 for parse, tool-name or tool-argument errors, the worst
    counts; without them -0.5 if the agent ended the episode, else -1.
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
