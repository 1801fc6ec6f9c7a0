"""`cua-project tasks`: the tasks that trainings recorded."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import rich_click as click

from consumers.console import Column, print_table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from consumers.tables import Task, Validator

COLUMNS = (
    *("task_id", "definition_hash", "name", "description", "difficulty", "category", "max_steps"),
    *("validation_type", "validation_query", "expected_result", "tags", "app_name", "source_type"),
)
"""Of the table that are printed as JSON."""


@click.command()
@click.option("--category", metavar="NAME", help="Only tasks of this category.")
@click.option(
    "--difficulty", type=click.Choice(["easy", "medium", "hard"]), help="Only of this difficulty."
)
@click.option(
    "--training", "training", metavar="NAME", help="Only tasks that this training's rollouts tried."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print an array of objects, each with its validator and its data set's entry.",
)
def command(
    *, category: str | None, difficulty: str | None, training: str | None, as_json: bool
) -> None:
    """List the tasks that trainings recorded, the newest definition of each.

    Reads the tables. `cua-train run --tasks '{"source_type": "database"}'` trains on them.

    Examples:
        cua-project tasks
        cua-project tasks --training first --difficulty easy
        cua-project tasks --json | jq -r '.[].task_id'
    """
    from consumers.commands.named_training import named_training
    from consumers.queries import get_session, list_tasks
    from consumers.queries.session import open_database

    open_database()
    with get_session() as session:
        wanted = None if training is None else named_training(session, training).id
        newest: dict[str, Task] = {}
        found = list_tasks(session, category=category, difficulty=difficulty, training=wanted)
        for task in found:
            newest.setdefault(task.task_id, task)
        if as_json:
            entries = _entries(session, list(newest.values()))
            click.echo(json.dumps([_row(task, entries.get(task.id)) for task in newest.values()]))
            return
        print_table(
            [
                *(Column("task_id"), Column("level"), Column("category")),
                *(Column("turns", is_number=True), Column("judged by"), Column("source")),
            ],
            [
                [
                    task.task_id,
                    task.difficulty or "",
                    task.category or "",
                    str(task.max_steps),
                    task.validation_query or task.validation_type or "",
                    task.source_type,
                ]
                for task in newest.values()
            ],
        )


def _entries(session: "Session", tasks: Sequence["Task"]) -> dict[UUID, object]:
    """Task -> the content of its entry, of tasks that are made of one."""
    from sqlalchemy import select

    from consumers.queries import entry_content
    from consumers.tables import Entry

    wanted = select(Entry).where(Entry.task_id.in_([task.id for task in tasks]))
    return {
        entry.task_id: entry_content(entry).model_dump(mode="json")
        for entry in session.scalars(wanted.order_by(Entry.created_at, Entry.id))
    }


def _row(task: "Task", entry: object) -> dict[str, object]:
    validator = _validator(task.validation_type, task.validators)
    return {
        **{name: getattr(task, name) for name in COLUMNS},
        "validator": None if validator is None else validator.config_json,
        "entry": entry,
        "updated_at": task.updated_at.isoformat(),
    }


def _validator(kind: str | None, validators: Sequence["Validator"]) -> "Validator | None":
    """The validator of the definition itself; others judged it later."""
    own = [validator for validator in validators if validator.validator_type == kind]
    return min(own, key=lambda item: (item.created_at, str(item.id)), default=None)
