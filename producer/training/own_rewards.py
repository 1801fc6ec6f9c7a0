"""Rewards from a user's module: a function of the answer, or a manager's token rewards.

Each completion is rewarded once, after its verdict, and the reward is recorded with it: a resumed
training, or a step that is trained again, reads the recorded numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.agents.text_to_sql.data.databases import DataFolder, data_folders, find_database
from producer.config import ORACLE_POLICY, RunConfig
from producer.errors import UsageError
from producer.policy.policy import Completion, Policy, TokenPolicy
from producer.process_rewards.registry import Kind, RewardFunction, registry
from producer.process_rewards.row_sets import sql_reward_function
from producer.process_rewards.user_module import load_user_module
from producer.rewards import Outcome, RewardError
from producer.rewards.user_code import UserCode, finite_number
from producer.rollouts.requests import CompletionReward, StepScores
from producer.task import Task
from schemas.actions import Answer


class OwnRewards(NamedTuple):
    """The reward function and manager that the configuration names."""

    function: RewardFunction | None
    manager: Callable[..., Any] | None
    """The reward manager's class."""


class Settings(dict[str, Any]):
    """Settings that a manager can read as keys or as attributes."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever is set
        """The setting with this name. Raises AttributeError."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def find_own_rewards(config: RunConfig) -> OwnRewards | None:
    """The named function and manager, or None. Raises UsageError listing those that exist."""
    module = None
    if config.reward_module is not None:
        # The module is registered by now; validating the configuration checked that it loads.
        module = load_user_module(config.reward_module).__name__
    function = _name("reward function", config.reward_function, module)
    manager = _name("reward manager", config.reward_manager, module)
    if module is not None and function is None and manager is None:
        message = (
            f"reward_module: {config.reward_module} registers neither a reward function nor a"
            " reward manager; decorate one"
        )
        raise UsageError(message)
    if manager is not None and config.model_name == ORACLE_POLICY:
        message = "reward_manager: the policy `oracle` has no tokens to reward; omit it"
        raise UsageError(message)
    if function is None and manager is None:
        return None
    with _named("reward_function"):
        own = None if function is None else registry.get_reward_function(function)
    with _named("reward_manager"):
        return OwnRewards(own, None if manager is None else registry.get_reward_manager(manager))


def _name(kind: Kind, given: str | None, module: str | None) -> str | None:
    """The given name, or the only one that the module registers."""
    if given is not None or module is None:
        return given
    names = registry.names(kind, module)
    if len(names) > 1:
        field = kind.replace(" ", "_")
        message = f"{field}: the module registers {', '.join(names)}; choose one with {field}"
        raise UsageError(message)
    return names[0] if names else None


@contextmanager
def _named(field: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        message = f"{field}: {error}"
        raise UsageError(message) from error


RewardCompletion = Callable[[Task, Completion, StepScores | None], CompletionReward]
"""Rewards a completion, whose steps may be scored. Has its own time limit. Raises RewardError."""


def rewarding_with(config: RunConfig, policy: Policy | None) -> RewardCompletion | None:
    """The function that rewards this policy's completions; None: the outcome does.

    Without a policy a reward manager gets no tokenizer. Raises UsageError.
    """
    own = find_own_rewards(config)
    if own is None:
        return None
    function = own.function or sql_reward_function
    manager = None
    called = f"the reward function {_called(function)}"
    if own.manager is not None:
        called = f"the reward manager {_called(own.manager)}"
        manager = _made(own.manager, config, policy, function)
    folders = data_folders(config.tasks, config.eval_tasks)
    code = UserCode(called, config.max_turn_time_seconds)

    def reward(task: Task, completion: Completion, scores: StepScores | None) -> CompletionReward:
        asked = _asked(task, completion, folders, config.reward_port)
        if manager is None:
            return CompletionReward(finite_number(code.call(lambda: function(**asked)), called))
        return code.call(
            lambda: _of_tokens(manager, called, completion, asked, scores, config.environment)
        )

    return reward


def _called(component: Callable[..., Any]) -> str:
    return getattr(component, "__name__", type(component).__name__)


def _made(
    manager: Callable[..., Any], config: RunConfig, policy: Policy | None, function: RewardFunction
) -> Callable[..., Any]:
    """Instantiate the manager for this run. Raises UsageError if that fails."""
    try:
        made: Callable[..., Any] = manager(
            tokenizer=policy.tokenizer if isinstance(policy, TokenPolicy) else None,
            num_examine=0,
            config=_settings(config),
            compute_score=function,
        )
    except (Exception, SystemExit) as error:
        message = (
            f"reward_manager: making {_called(manager)} raised {type(error).__name__}: {error}"
        )
        raise UsageError(message) from error
    return made


def _settings(config: RunConfig) -> Settings:
    """The settings that RewardSQL's managers read."""
    return Settings(
        reward_model=Settings(
            enable=config.process_reward_model is not None,
            rm_coef=config.rm_coef if config.process_reward_model is not None else 0.0,
            enable_EXreward=config.reward_model_sees_results,
            port=config.reward_port,
        ),
        verifier=Settings(reward_coef=config.verifier_coef, port=config.reward_port),
    )


def _asked(
    task: Task,
    completion: Completion,
    folders: Sequence[DataFolder],
    port: int | None,
) -> dict[str, Any]:
    """Arguments of a reward function. Raises RewardError if the task's database is gone."""
    entry = task.entry
    assert entry is not None  # noqa: S101  # tasks of this environment have one
    number = entry.entry_id
    path = find_database(folders, entry.database or "", entry.database_sha256)
    if path is None:
        # Otherwise every completion would get reward 0.
        message = f"database {entry.database!r} is gone, or is not as it was recorded"
        raise RewardError(message)
    return {
        "port": port,
        "db_id": entry.database or "",
        "question_id": int(number) if number.isdecimal() else number,
        "solution_str": completion.text,
        "ground_truth": entry.sql or "",
        "extra_info": {
            "question": entry.instruction,
            "prompt": task.description,
            "evidence": entry.evidence or "",
            "difficulty": entry.difficulty,
            "split": task.split,
            "database": str(path),
        },
    }


def _of_tokens(
    manager: Callable[..., Any],
    called: str,
    completion: Completion,
    asked: dict[str, Any],
    scores: StepScores | None,
    data_source: str,
) -> CompletionReward:
    """Call the manager on a batch of one, so that a reward does not depend on other responses."""
    import torch

    from producer.process_rewards.step_and_outcome import RewardBatch

    tokens = completion.tokens
    if tokens is None or not tokens.completion_tokens:
        return CompletionReward(0.0)
    responses = torch.tensor([tokens.completion_tokens])
    prompts = torch.tensor([tokens.prompt_tokens])
    batch = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": torch.ones(1, prompts.shape[1] + responses.shape[1], dtype=torch.long),
    }
    if scores is not None:
        marks = torch.zeros(responses.shape)
        for step in scores.steps:
            # A step within the previous step's token has no token of its own. Use a tiny mark for a
            # score of 0: a mark of 0 means none, and the step would get the score of the next one.
            if step.last_token > step.first_token:
                marks[0, step.last_token - 1] = max(step.score, torch.finfo(marks.dtype).tiny)
        batch["rm_scores"] = marks
    found = manager(
        RewardBatch(
            batch,
            {
                "db_id": [asked["db_id"]],
                "index": [asked["question_id"]],
                "data_source": [data_source],
                "reward_model": [{"style": "rule", "ground_truth": asked["ground_truth"]}],
                "extra_info": [asked["extra_info"]],
            },
        )
    )
    if isinstance(found, dict):
        found = found.get("reward_tensor")
    if not isinstance(found, torch.Tensor) or found.shape != responses.shape:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        message = (
            f"{called} must return rewards of shape {tuple(responses.shape)}, one for each token;"
            f" found {shape}"
        )
        raise RewardError(message)
    rewards = tuple(finite_number(item, called) for item in found[0].tolist())
    return CompletionReward(sum(rewards), rewards)


def try_rewards(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Raises UsageError with exception, file and line if a user's reward raises."""
    if ":" in config.reward:
        reward = config.make_reward()
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
    """A solved episode and one that ran out of turns, to try the reward on."""
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
    """Raises UsageError if neither the first nor the last task's gold can be rewarded."""
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
