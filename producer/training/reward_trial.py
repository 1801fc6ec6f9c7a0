"""Calls a user's reward before anything is recorded: one that raises is refused, not trained with.

A reward function gets an example outcome, one of a text-to-SQL training the golds of two tasks. A
reward manager, which rewards the tokens of a policy, is called with the policy's completions only.
"""

from collections.abc import Sequence

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.config import RunConfig
from producer.config.reward import configured_reward
from producer.errors import UsageError
from producer.policy.policy import Completion
from producer.rewards import Outcome, RewardError
from producer.task import Task
from producer.training.own_rewards import find_own_rewards, rewarding_with
from schemas.actions import Answer


def try_rewards(config: RunConfig, tasks: Sequence[Task]) -> None:
    """UsageError with the exception, its file and line, if a reward of the user's raises."""
    if ":" in config.reward:
        reward = configured_reward(config)
        for outcome in _examples(config, tasks[0]):
            try:
                reward(outcome)
            except RewardError as error:
                kind = "a solved episode" if outcome.success else "an episode without turns left"
                message = f"reward: {error}; it was tried with {kind} of task {tasks[0].task_id}"
                raise UsageError(message) from None
    own = find_own_rewards(config)
    if own is not None and own.manager is None:
        _try_on_golds(config, tasks)


def _examples(config: RunConfig, task: Task) -> tuple[Outcome, Outcome]:
    """A solved episode and one that ran out of turns."""
    max_turns = min(config.max_turns, task.max_steps)
    solved, unsolved = (
        Outcome(
            success=success,
            num_turns=1 if success else max_turns,
            max_turns=max_turns,
            attempted_completion=success,
            reported_success=success or None,
            ran_out_of_turns=not success,
            ran_out_of_time=False,
            parse_errors=0,
            tool_name_errors=0,
            tool_arg_errors=0,
            runtime_errors=0,
            num_actions=1 if success else max_turns,
            repeated_actions=0,
            num_tokens=16,
            turn_first_success=1 if success else None,
            task_id=task.task_id,
        )
        for success in (True, False)
    )
    return solved, unsolved


def _try_on_golds(config: RunConfig, tasks: Sequence[Task]) -> None:
    """UsageError if the gold of neither the first nor the last task can be rewarded."""
    reward = rewarding_with(config, None)
    assert reward is not None  # noqa: S101  # the caller has found a function
    codec = TextToSqlCodec()
    errors = []
    for task in (tasks[0], tasks[-1]):
        sql = task.entry.sql if task.entry is not None else None
        try:
            reward(task, Completion(codec.encode(Answer(text=sql or ""), 0, 0), (), None), None)
        except RewardError as error:
            errors.append(error)
        else:
            return
    message = f"reward_function: {errors[0]}; it was tried with the gold of task {tasks[0].task_id}"
    raise UsageError(message)
