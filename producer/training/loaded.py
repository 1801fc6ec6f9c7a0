"""Loads what a configuration names before anything is emitted, so an error leaves no trace."""

import logging
import os
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from producer.config import DEMO_POLICY, RunConfig
from producer.emit import StreamWriter
from producer.environments.environment import EnvironmentFailedError
from producer.errors import UsageError
from producer.policy.learner import Learner
from producer.rollouts.engine import EnvironmentFactory
from producer.rollouts.plan import StatedTask
from producer.task import Task
from producer.tasks.sources import CheckTask, DefaultJudge, load_tasks
from producer.tasks.statements import entry_fact, task_facts
from producer.training.batches import check_skills
from producer.training.open_policy import (
    check_unmade_demo,
    is_unmade,
    open_policy,
    require_libraries,
)
from producer.training.own_rewards import try_rewards
from producer.training.rubric import Scorer, load_step_scorer
from producer.training.samples import find_core_function
from producer.training.tracking import require_tracker
from producer.validators.judges import AGENT, UNJUDGED, AskModel
from schemas.installation import Installation
from schemas.task import TaskStated

logger = logging.getLogger(__name__)

MAX_NAMED = 5
"""Maximum number of tasks that a warning names."""


class LoadedTasks(NamedTuple):
    """The tasks, and the model that judges them."""

    tasks: list[Task]
    eval_tasks: list[Task]
    ask_model: AskModel | None
    """None if no task is judged by an endpoint."""


def load_run_tasks(config: RunConfig, *, is_check: bool = False) -> LoadedTasks:
    """Training and evaluation tasks. Raises UsageError, NotFoundError, UnreachableError.

    `is_check`: they will be loaded again, so nothing is logged and no device is asked for them.
    """
    check = None if is_check else set_up_check(config)
    tasks = load_tasks(config.tasks, default=_default(config), is_check=is_check, check=check)
    _require_judged(tasks, "tasks")
    eval_tasks = tasks
    if config.eval_tasks is not None:
        eval_tasks = _load_evaluated(config, config.eval_tasks, is_check=is_check)
    _require_work(config, [*tasks, *eval_tasks])
    if any(task.judge == AGENT for task in tasks) and not is_check:
        logger.warning(
            "the agent's own report decides the reward of %d tasks: training may teach it to claim"
            " success",
            sum(task.judge == AGENT for task in tasks),
        )
    return _with_judges(config, tasks, eval_tasks)


def evaluation_tasks(config: RunConfig, given: Collection[str]) -> LoadedTasks:
    """The tasks of a manual evaluation; `given` are the fields passed for it.

    A judge that the training recorded, rather than one that was passed, may be left without tasks.
    Raises UsageError, NotFoundError, UnreachableError.
    """
    source = config.tasks if config.eval_tasks is None else config.eval_tasks
    tasks = _load_evaluated(config, source)
    if "judge" in given:
        _require_work(config, tasks)
    loaded = _with_judges(config, [], tasks)
    try_rewards(config, loaded.eval_tasks)
    return loaded


def _load_evaluated(config: RunConfig, source: JsonValue, *, is_check: bool = False) -> list[Task]:
    tasks = load_tasks(
        source,
        allow_unjudged=True,
        default=_default(config),
        field="eval_tasks",
        is_check=is_check,
        check=None if is_check else set_up_check(config),
    )
    _require_judged(tasks, "eval_tasks")
    return tasks


def _default(config: RunConfig) -> DefaultJudge:
    return DefaultJudge(config.judge, config.judge_model)


def _require_work(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Raises UsageError for a judge that no task uses."""
    if config.judge is None or any(_is_judges_task(task, config) for task in tasks):
        return
    message = (
        f"judge: {config.judge!r} has nothing to judge, because every task has a validator or a"
        " judge of its own; leave judge out"
    )
    raise UsageError(message)


def _is_judges_task(task: Task, config: RunConfig) -> bool:
    if task.judge == config.judge:
        return config.judge_model in {None, task.judge_model}
    return config.judge == UNJUDGED and not task.is_judged


def _require_judged(tasks: Sequence[Task], field: str) -> None:
    if not any(task.is_judged for task in tasks):
        message = (
            f"{field}: none of these {len(tasks)} tasks is judged, so that there is no success to"
            " measure; give them a validation_query or a judge"
        )
        raise UsageError(message)


def _with_judges(config: RunConfig, tasks: list[Task], eval_tasks: list[Task]) -> LoadedTasks:
    """The tasks, with a function that asks their endpoints, after all endpoints have answered."""
    asked = {
        (str(task.judge), task.judge_model)
        for task in (*tasks, *eval_tasks)
        if task.validation_type == "model"
    }
    if not asked:
        return LoadedTasks(tasks, eval_tasks, None)
    if config.ablate != "none":
        message = f"ablate: {config.ablate} blanks what the judge sees too; use device queries"
        raise UsageError(message)
    # Imported here because importing it takes a third of a second.
    from producer.validators.model_judge import open_judge

    judge = open_judge(os.environ, config.max_turn_time_seconds)
    found = {
        (url, wanted): judge.find_model(url, wanted)
        for url, wanted in sorted(asked, key=lambda item: (item[0], item[1] or ""))
    }

    def named(task: Task) -> Task:
        if task.validation_type != "model":
            return task
        return replace(task, judge_model=found[str(task.judge), task.judge_model])

    named_tasks = [named(task) for task in tasks]
    is_same = eval_tasks is tasks
    return LoadedTasks(
        named_tasks, named_tasks if is_same else [named(task) for task in eval_tasks], judge
    )


def statements(loaded: LoadedTasks) -> list[TaskStated]:
    """The task definitions that a training records, in this order."""
    tasks = loaded.tasks
    if loaded.eval_tasks is not tasks:
        tasks = [*tasks, *loaded.eval_tasks]
    return [task_facts(task)[0] for task in tasks]


def state_tasks(stream: StreamWriter, tasks: Sequence[Task]) -> list[StatedTask]:
    """Emit each task's definition. Content-addressed, so emitting one again changes nothing."""
    stated: list[StatedTask] = []
    for task in tasks:
        task_event, validator_event = task_facts(task)
        stream.emit(task_event)
        if validator_event is not None:
            stream.emit(validator_event)
        entry_event = entry_fact(task, task_event.id)
        if entry_event is not None:
            stream.emit(entry_event)
        stated.append(
            StatedTask(
                task,
                task_event.id,
                None if validator_event is None else validator_event.id,
                None if entry_event is None else entry_event.id,
            )
        )
    return stated


class Loaded(NamedTuple):
    """A configuration's tasks, policy and scorer."""

    config: RunConfig
    tasks: LoadedTasks
    policy: tuple[Learner, EnvironmentFactory] | None
    """None for a demo policy that does not exist yet: its warm-up is recorded, after the claim."""
    step_scorer: Scorer | None
    """None if completions' steps are not scored."""


def load(
    config: RunConfig, installation: Installation, stop: threading.Event | None = None
) -> Loaded:
    """Load everything the configuration names.

    `stop`: as in `open_policy`. Raises UsageError, NotFoundError, UnreachableError.
    """
    tasks = load_run_tasks(config)
    check_skills(config, tasks.tasks)
    require_tracker(config)
    if config.core_function is not None:
        find_core_function(config)
    try_rewards(config, tasks.tasks)
    policy = load_policy(config, installation, tasks, stop=stop)
    return Loaded(config, tasks, policy, load_step_scorer(config))


def load_policy(
    config: RunConfig,
    installation: Installation,
    tasks: LoadedTasks | None = None,
    *,
    is_training: bool = True,
    stop: threading.Event | None = None,
) -> tuple[Learner, EnvironmentFactory] | None:
    """The policy; None for a demo policy that does not exist yet.

    `tasks`: the tasks whose first prompts must fit the policy; None skips the check. `stop`: as in
    `open_policy`. Raises UsageError, NotFoundError.
    """
    asked = [] if tasks is None else tasks.eval_tasks
    if tasks is not None and is_training:
        asked = [*tasks.tasks, *tasks.eval_tasks]
    if is_training or config.base_url is None:
        require_libraries(config)
    log_strange_tasks(config, asked)
    instructions = [task.description for task in asked]
    is_served = config.base_url is not None and not is_training
    if not is_served and is_unmade(config, installation.policies_dir):
        if tasks is not None:
            check_unmade_demo(config, is_training=is_training, instructions=instructions)
        return None
    return open_policy(
        config,
        installation.policies_dir,
        is_training=is_training,
        instructions=instructions,
        stop=stop,
    )


def log_strange_tasks(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Warn of tasks whose words the demo policy does not know, because its warm-up had others."""
    built = config.agent.built_policy
    if config.model_name != DEMO_POLICY or built is None or built.task_ids is None:
        return
    known = built.task_ids
    strange = [*dict.fromkeys(task.task_id for task in tasks if task.task_id not in known)]
    if strange:
        more = f" and {len(strange) - MAX_NAMED} more" if len(strange) > MAX_NAMED else ""
        logger.warning(
            "the small policy of %s knows only the words of its %d warm-up tasks; these are not"
            " among them: %s%s; give a pretrained policy as model_name for them",
            config.environment,
            len(known),
            ", ".join(strange[:MAX_NAMED]),
            more,
        )


def set_up_check(config: RunConfig) -> CheckTask:
    """Returns a check whether the environment can set a task up and judge it."""
    check = config.agent.check_task

    def set_up(task: Task) -> None:
        try:
            check(config, task)
        except EnvironmentFailedError as error:
            raise ValueError(str(error)) from None

    return set_up
