"""What a reward may know of an episode, and the reward's value with the costs taken off."""

from collections.abc import Callable
from dataclasses import dataclass

from producer.rewards.user_code import RewardError, finite_number


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
