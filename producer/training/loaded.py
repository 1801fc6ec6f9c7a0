"""What a configuration names, loaded before anything is emitted: a mistake leaves nothing."""

import os
from collections.abc import Collection
from typing import NamedTuple

from producer.config import RunConfig
from producer.environments.environment import EnvironmentFailedError
from producer.errors import UsageError
from producer.policy.learner import Learner
from producer.rollouts.engine import EnvironmentFactory
from producer.task import Task
from producer.tasks.sources import CheckTask
from producer.training.load_tasks import LoadedTasks, load_evaluation_tasks, load_run_tasks
from producer.training.open_policy import check_unmade_demo, is_unmade, open_policy, require_torch
from producer.training.own_rewards import try_rewards
from producer.training.rubric import Scorer, load_step_scorer
from producer.training.skills import check_skills
from producer.training.token_credit import find_core_function
from producer.training.tracking import require_tracker
from schemas.installation import Installation


class Loaded(NamedTuple):
    """A configuration's tasks and policy."""

    config: RunConfig
    tasks: LoadedTasks
    policy: tuple[Learner, EnvironmentFactory] | None
    """None: the demo policy, which is not made yet: its warm-up is recorded, after the claim."""
    step_scorer: Scorer | None
    """None: completions' steps are not scored."""


def load(config: RunConfig, installation: Installation) -> Loaded:
    """Everything that the configuration names. UsageError, NotFoundError, UnreachableError."""
    if config.base_url is not None:
        message = (
            "base_url: a policy on a server can be evaluated, not trained; use cua-train evaluate"
            " --base-url URL --model-name NAME, or omit it"
        )
        raise UsageError(message)
    tasks = load_run_tasks(config, os.environ, check=set_up_check(config))
    check_skills(config, tasks.tasks)
    require_tracker(config)
    if config.core_function is not None:
        find_core_function(config)
    try_rewards(config, tasks.tasks)
    policy = load_policy(config, installation, tasks)
    return Loaded(config, tasks, policy, load_step_scorer(config))


def evaluation_tasks(config: RunConfig, given: Collection[str]) -> LoadedTasks:
    """The tasks of an evaluation by hand, for which the fields `given` were given.

    UsageError, NotFoundError, UnreachableError.
    """
    tasks = load_evaluation_tasks(
        config, os.environ, is_judge_given="judge" in given, check=set_up_check(config)
    )
    try_rewards(config, tasks.eval_tasks)
    return tasks


def load_policy(
    config: RunConfig,
    installation: Installation,
    tasks: LoadedTasks | None = None,
    *,
    is_training: bool = True,
) -> tuple[Learner, EnvironmentFactory] | None:
    """The policy; None for the demo policy before it is made. UsageError, NotFoundError.

    `tasks`: those whose first prompts it must take; None: not checked.
    """
    asked = [] if tasks is None else tasks.eval_tasks
    if tasks is not None and is_training:
        asked = [*tasks.tasks, *tasks.eval_tasks]
    if config.base_url is None:
        require_torch(config.model_name)
    instructions = [task.description for task in asked]
    if is_unmade(config, installation.policies_dir):
        if tasks is not None:
            check_unmade_demo(config, is_training=is_training, instructions=instructions)
        return None
    return open_policy(
        config, installation.policies_dir, is_training=is_training, instructions=instructions
    )


def set_up_check(config: RunConfig) -> CheckTask:
    """Whether the environment can set a task up, and judge it."""
    check = config.agent.check_task

    def set_up(task: Task) -> None:
        try:
            check(config, task)
        except EnvironmentFailedError as error:
            raise ValueError(str(error)) from None

    return set_up
