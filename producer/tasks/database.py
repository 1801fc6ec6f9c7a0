"""Tasks recorded by earlier trainings, read from the tables through the command `cua-project`.

The trainer has no database driver: as elsewhere, the consuming side is a separate process.
"""

import json
import logging
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from producer.agents.android.queries import (
    describe_unknown_query,
    describe_wrong_answer,
    find_queries,
)
from producer.errors import CuaTrainError, NotFoundError, UnreachableError, UsageError
from producer.task import Split, Task
from producer.tasks.statements import definition_hash
from producer.validators.judges import AGENT
from schemas.distribution import install_command
from schemas.entry import EntryContent

logger = logging.getLogger(__name__)

TIMEOUT_S = 120.0
"""Long enough to start an embedded database first."""
ERRORS: dict[int, type[CuaTrainError]] = {2: UsageError, 3: NotFoundError, 5: UnreachableError}
"""Maps the command's exit code to the error with the same exit code."""
SPLITS: tuple[Split, ...] = ("train", "eval")
NOT_OF_THE_TASK = frozenset({"definition_hash", "validation_type", "validator"})
"""Fields of a row that a Task lacks or has under another name."""


class _Validator(BaseModel):
    model_config = ConfigDict(extra="ignore")

    setup: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    judge: str | None = None
    model: str | None = None


class _RecordedTask(BaseModel):
    """A row printed by `cua-project tasks --json`."""

    model_config = ConfigDict(extra="ignore")

    task_id: str
    definition_hash: str
    name: str
    description: str
    difficulty: Literal["easy", "medium", "hard"] | None
    category: str | None
    max_steps: int
    validation_type: str | None
    validation_query: str | None
    expected_result: str | None
    tags: tuple[str, ...]
    app_name: str | None
    source_type: str
    validator: _Validator | None
    entry: EntryContent | None = None

    def task(self) -> Task:
        """The recorded task.

        Where the split is unknown, the one that gives the recorded hash is used.
        """
        validator = self.validator or _Validator()
        names_its_judge = self.entry is None and self.validation_type in {AGENT, "environment"}
        task = Task(
            **{name: value for name, value in self if name not in NOT_OF_THE_TASK},
            setup=validator.setup,
            validation_config=validator.parameters,
            judge=self.validation_type if names_its_judge else validator.judge,
            judge_model=validator.model,
        )
        # The tables do not store the split, but the hash covers it.
        candidates = [replace(task, split=split) for split in SPLITS]
        same = (item for item in candidates if definition_hash(item) == self.definition_hash)
        return next(same, task)


def tasks_from_database(
    where: str, *, category: str | None, difficulty: str | None, training_name: str | None
) -> list[Task]:
    """The newest definition of every matching recorded task, sorted by task_id.

    Raises UsageError without the command, NotFoundError for an unknown training, and
    UnreachableError.
    """
    if find_spec("consumers") is None or find_spec("sqlalchemy") is None:
        message = (
            f"{where}: the source 'database' reads the tables through cua-project, which is not"
            f" installed here; run {install_command('project', 'database')}, or use another source"
        )
        raise UsageError(message)
    filters = {"--category": category, "--difficulty": difficulty, "--training": training_name}
    given = [f"{flag}={value}" for flag, value in filters.items() if value is not None]
    text = _run(["tasks", "--json", *given], where)
    try:
        rows = TypeAdapter(list[_RecordedTask]).validate_json(text)
    except ValidationError as error:
        message = (
            f"{where}: the output of `cua-project tasks --json` is not a list of tasks ({error});"
            " install the same version of cua-train and cua-project"
        )
        raise CuaTrainError(message) from error
    for row in rows:
        if (query := row.validation_query) is None:
            continue
        if find_queries(query) is None:
            wrong: str | None = describe_unknown_query(query)
        else:
            wrong = describe_wrong_answer(query, row.expected_result or "")
        if wrong is not None:
            message = f"{where}: task {row.task_id!r}: {wrong}"
            raise UsageError(message)
    return [row.task() for row in rows]


def _run(words: list[str], where: str) -> str:
    command = [sys.executable, "-P", "-m", "consumers", "--log-format", "json", *words]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{where}: cua-project tasks did not answer within {TIMEOUT_S:g} s; try again"
        raise UnreachableError(message) from None
    if done.returncode:
        message = f"{where}: {_last_message(done.stderr)}"
        raise ERRORS.get(done.returncode, CuaTrainError)(message)
    return done.stdout


def _last_message(stderr: str) -> str:
    """The command's last message. Its lines are JSON, unless something else wrote to stderr."""
    lines = stderr.strip().splitlines() or ["cua-project tasks failed"]
    try:
        return str(json.loads(lines[-1])["message"])
    except (ValueError, LookupError, TypeError):
        return lines[-1]
