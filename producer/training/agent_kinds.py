"""What an agent works in, by the configuration's `environment`: one entry for each kind."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from producer.codecs.codec import Codec
from producer.codecs.dbbench import DbBenchCodec
from producer.codecs.text_to_sql import TextToSqlCodec
from producer.config import RunConfig
from producer.environments.android_sim.device.answers import check_answer
from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.environments.dbbench import DbBenchEnvironment
from producer.environments.dbbench.environment import check_server, open_on_server
from producer.environments.environment import Environment
from producer.environments.text_to_sql import TextToSqlEnvironment
from producer.sql_data.text_to_sql.databases import data_folders, find_database
from producer.task import Task
from producer.validators import judge

DBBENCH_PASSWORD = "CUA_DBBENCH_PASSWORD"  # noqa: S105  # the variable's name
DEMO_TASKS = frozenset({"demo_training", "demo_eval", "demo_all", "ids"})
"""Sources whose tasks are ours and tested."""
GENERATED_TASKS = frozenset({"dbbench_generated"})
"""The same; their golds were found by opening them."""


@dataclass(frozen=True, slots=True)
class AgentKind:
    """An environment, the tasks that it can set up, and the format that a policy writes there."""

    make_environment: Callable[[RunConfig], Environment]
    """A fresh one for each rollout."""
    check_task: Callable[[RunConfig, Task], None]
    """ValueError or EnvironmentFailedError for a task that this environment cannot set up."""
    screen_px: tuple[int, int] | None
    """Width and height; None: it has no screen, and a policy needs no vision tower."""
    renderer_name: str | None = None
    """What `renderer_name` auto means; None: it depends on the policy."""
    gold_codec: Callable[[], Codec] | None = None
    """What the policy `oracle` writes golds in; None: it reads the phone's state instead."""
    seeds_matter: bool = False
    """Whether a seed changes a task's initial state; False: each episode of a task is the same."""
    asks_first: bool = True
    """Whether a gold is executed before it is answered; False: it is the answer."""


def _check_on_a_phone(_config: RunConfig, task: Task) -> None:
    if task.source_type in DEMO_TASKS:
        return
    if task.entry is not None:
        message = f"task {task.task_id} is about a database; use environment {task.entry.kind}"
        raise ValueError(message)
    if task.validation_query is not None:
        check_answer(task.validation_query, task.expected_result or "")
    phone = AndroidSim()
    try:
        phone.start(task, seed=0)
        if task.validation_type == "shell":
            judge(task, phone.shell)
    finally:
        phone.close()


def _dbbench(config: RunConfig) -> Environment:
    if config.dbbench_database is None:
        return DbBenchEnvironment()
    password = os.environ.get(DBBENCH_PASSWORD)
    return DbBenchEnvironment(open_on_server(config.dbbench_database, password))


def _check_in_a_database(config: RunConfig, task: Task) -> None:
    if config.dbbench_database is not None:
        check_server(config.dbbench_database, os.environ.get(DBBENCH_PASSWORD))
    if task.source_type in GENERATED_TASKS:
        return
    environment = DbBenchEnvironment()
    try:
        environment.open(task, 0)
    finally:
        environment.close()


def _text_to_sql(config: RunConfig) -> TextToSqlEnvironment:
    folders = data_folders(config.tasks, config.eval_tasks)
    return TextToSqlEnvironment(
        lambda entry: find_database(folders, entry.database or "", entry.database_sha256)
    )


AGENT_KINDS: dict[str, AgentKind] = {
    "android": AgentKind(
        make_environment=lambda _config: AndroidSim(),
        check_task=_check_on_a_phone,
        screen_px=(WIDTH_PX, HEIGHT_PX),
        seeds_matter=True,
    ),
    "dbbench": AgentKind(
        make_environment=_dbbench,
        check_task=_check_in_a_database,
        screen_px=None,
        renderer_name="dbbench",
        gold_codec=DbBenchCodec,
    ),
    "text_to_sql": AgentKind(
        make_environment=_text_to_sql,
        check_task=lambda config, task: _text_to_sql(config).check(task),
        screen_px=None,
        renderer_name="text_to_sql",
        gold_codec=TextToSqlCodec,
        asks_first=False,
    ),
}
"""`environment` -> its kind."""
