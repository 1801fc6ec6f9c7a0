"""The tasks of a configuration, with their judges found: everything that a mistake could be in."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from producer.config import RunConfig
from producer.emit import StreamWriter
from producer.errors import UsageError
from producer.rollouts.plan import StatedTask
from producer.task import Task
from producer.tasks.sources import CheckTask, DefaultJudge, load_tasks
from producer.tasks.statements import entry_fact, task_facts
from producer.validators.judges import AGENT, UNJUDGED, AskModel
from schemas.task import TaskStated

if TYPE_CHECKING:
    from producer.validators.model_judge import ModelJudge


logger = logging.getLogger(__name__)

KEY_VARIABLES = ("CUA_JUDGE_API_KEY", "OPENAI_API_KEY")
"""Of the judge's key; the first that is set."""
JUDGE_SHARE = 0.8
"""Of the time after which an environment's thread counts as hung: a judge gives up before."""
MAX_JUDGE_S = 120.0


class LoadedTasks(NamedTuple):
    """What is asked, and who is asked whether it was done."""

    tasks: list[Task]
    eval_tasks: list[Task]
    ask_model: AskModel | None
    """None: no task is judged by an endpoint."""


def load_run_tasks(
    config: RunConfig,
    environ: Mapping[str, str],
    *,
    is_check: bool = False,
    check: CheckTask | None = None,
) -> LoadedTasks:
    """Training and evaluation tasks. UsageError, NotFoundError, UnreachableError.

    `is_check`: nothing is logged, because they will be loaded again. `check`: as `load_tasks`.
    """
    tasks = load_tasks(config.tasks, default=_default(config), is_check=is_check, check=check)
    _require_judged(tasks, "tasks")
    eval_tasks = tasks
    if config.eval_tasks is not None:
        eval_tasks = load_tasks(
            config.eval_tasks,
            allow_unjudged=True,
            default=_default(config),
            field="eval_tasks",
            is_check=is_check,
            check=check,
        )
        _require_judged(eval_tasks, "eval_tasks")
    _require_work(config, [*tasks, *eval_tasks])
    if any(task.judge == AGENT for task in tasks) and not is_check:
        logger.warning(
            "the agent's own report decides the reward of %d tasks: training may teach it to claim"
            " success",
            sum(task.judge == AGENT for task in tasks),
        )
    return _with_judges(config, tasks, eval_tasks, environ)


def load_evaluation_tasks(
    config: RunConfig,
    environ: Mapping[str, str],
    *,
    is_judge_given: bool,
    check: CheckTask | None = None,
) -> LoadedTasks:
    """Tasks of an evaluation by hand, as `eval_tasks`.

    A judge that is not given for it but recorded by the training may have nothing to judge.
    """
    source = config.tasks if config.eval_tasks is None else config.eval_tasks
    tasks = load_tasks(
        source, default=_default(config), allow_unjudged=True, field="eval_tasks", check=check
    )
    _require_judged(tasks, "eval_tasks")
    if is_judge_given:
        _require_work(config, tasks)
    return _with_judges(config, [], tasks, environ)


def open_judge(environ: Mapping[str, str], *, max_s: float = MAX_JUDGE_S) -> "ModelJudge":
    """The client of judges' endpoints, with the environment's key; gives up after `max_s`."""
    from producer.validators.model_judge import ModelJudge

    key = next((environ[name] for name in KEY_VARIABLES if environ.get(name)), None)
    return ModelJudge(key, max_s)


def _default(config: RunConfig) -> DefaultJudge:
    return DefaultJudge(config.judge, config.judge_model)


def _require_work(config: RunConfig, tasks: Sequence[Task]) -> None:
    """UsageError for a judge that no task is left to."""
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


def _with_judges(
    config: RunConfig, tasks: list[Task], eval_tasks: list[Task], environ: Mapping[str, str]
) -> LoadedTasks:
    """The tasks with the model that each endpoint is asked for, once every endpoint answers."""
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
    max_s = min(MAX_JUDGE_S, JUDGE_SHARE * config.max_turn_time_seconds)
    judge = open_judge(environ, max_s=max_s)
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
    """What a training states of its tasks, in this order."""
    tasks = loaded.tasks
    if loaded.eval_tasks is not tasks:
        tasks = [*tasks, *loaded.eval_tasks]
    return [task_facts(task)[0] for task in tasks]


def state_tasks(stream: StreamWriter, tasks: Sequence[Task]) -> list[StatedTask]:
    """Emit each task's definition. Content-addressed, so restating one changes nothing."""
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
