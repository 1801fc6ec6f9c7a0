"""Converts entries of DB Bench to tasks."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.layout import read_entries
from producer.agents.dbbench.data.scene import THEMES
from producer.agents.dbbench.data.skills import SKILLS
from producer.agents.dbbench.data.splits import Split, of_split, split_of, split_of_table
from producer.errors import UsageError
from producer.task import Task
from schemas.advice import did_you_mean
from schemas.entry import EntryContent

NUM_ROUNDS: Final = 3


def load_dbbench(
    path: Path,
    where: str,
    *,
    split: Split | None = None,
    skills: Sequence[str] = (),
    positions: Collection[int] | None = None,
) -> list[Task]:
    """Load the tasks of a folder in DB Bench's layout.

    With `skills`, only tasks that need one of them. `positions` are indexes of entries, from 0;
    None selects all. Raises UsageError, mostly prefixed with `where`.
    """
    _check_skills(skills, where)
    found = read_entries(path)
    if positions is not None:
        if (last := max(positions)) >= len(found):
            message = f"{where}.positions: {path} has {len(found)} entries, there is none at {last}"
            raise UsageError(message)
        found = [found[position] for position in sorted({*positions})]
    entries = [
        entry for entry in of_split(found, split) if not skills or set(skills) & set(entry.skills)
    ]
    if not entries:
        chosen = [f"split {split!r}"] if split else []
        chosen += [f"skills {', '.join(skills)}"] if skills else []
        message = f"{where}: no entry of {path} has {' and '.join(chosen)}"
        raise UsageError(message)
    return [task_of(entry) for entry in entries]


def generated_tasks(
    num_samples: int, seed: int, where: str, *, split: Split | None, skills: Sequence[str]
) -> list[Task]:
    """Generate `num_samples` entries about tables of the split.

    Raises UsageError, prefixed with `where`.
    """
    _check_skills(skills, where)
    return [*_generated(num_samples, seed, split, tuple(skills))]


@lru_cache(maxsize=4)
def _generated(
    num_samples: int, seed: int, split: Split | None, skills: tuple[str, ...]
) -> tuple[Task, ...]:
    """Cached, because a run loads its tasks twice, first to check them."""
    themes = [theme for theme in THEMES if split in {None, split_of_table(theme.table)}]
    entries = generate(num_samples, seed, skills or SKILLS, themes=themes)
    named = [
        entry.model_copy(update={"entry_id": f"{split or 'all'}-{seed}-{entry.entry_id}"})
        for entry in entries
    ]
    return tuple(replace(task_of(entry), source_type="dbbench_generated") for entry in named)


def task_of(entry: EntryContent) -> Task:
    """The task of an entry, whose description is its instruction and a description of the table."""
    table = entry.table_info
    assert table is not None  # noqa: S101  # entries of DB Bench have one
    columns = ", ".join(column.name for column in table.columns)
    return Task(
        task_id=entry.entry_id,
        name=f"DB Bench {entry.entry_id}",
        description=(
            f"{entry.instruction}\nThe name of this table is {table.name}, and the headers of this"
            f" table are {columns}."
        ),
        difficulty=None,
        category="database",
        max_steps=NUM_ROUNDS,
        validation_query=None,
        expected_result=None,
        tags=entry.skills,
        source_type="dbbench",
        split="eval" if split_of(entry) == "held_out" else "train",
        entry=entry,
    )


def _check_skills(skills: Sequence[str], where: str) -> None:
    for skill in skills:
        if skill not in SKILLS:
            message = f"{where}.skills: {skill!r} is no skill.{did_you_mean(skill, SKILLS)}"
            raise UsageError(message)
