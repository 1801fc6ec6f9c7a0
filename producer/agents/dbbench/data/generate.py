"""Generates entries with golds, balanced over skills, and finds what is wrong with entries."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from producer.agents.dbbench.data.drafts import DRAFTS
from producer.agents.dbbench.data.judging import is_right_answer
from producer.agents.dbbench.data.scene import THEMES, Draft, Scene, Theme, column_names, fill
from producer.agents.dbbench.data.skills import SKILLS, is_ordered, kind_of, skills_of
from producer.agents.dbbench.data.splits import has_form_of_its_split
from producer.agents.dbbench.data.table import LIMITS, open_embedded, state_hash
from producer.seeds import derived_seed
from producer.sql_execution import Cell, Limits, SqlRefusedError
from schemas.entry import Column, EntryContent, TableInfo

MIN_ROWS: Final = 20
MAX_ROWS: Final = 50
MAX_ANSWER_ROWS: Final = 6
"""Maximum rows of a gold, so that a small policy can write the answer."""
GOLD_LIMITS: Final = Limits(num_rows=10_000, result_characters=10_000_000)
"""Limits for checking golds, whose rows no policy reads."""


def generate(
    num_samples: int, seed: int, skills: Sequence[str] = SKILLS, *, themes: Sequence[Theme] = THEMES
) -> Iterator[EntryContent]:
    """Generate `num_samples` entries, cycling through the skills. Deterministic for a seed.

    `themes` are the subjects that tables may have. Every entry is solved by its gold, and neither
    by an empty answer nor by doing nothing. For any seeds, no gold about a held-out table has the
    form of one about another table. Raises DatabaseFailedError.
    """
    for index in range(num_samples):
        yield _entry(index, seed, skills[index % len(skills)], themes)


def _entry(index: int, seed: int, skill: str, themes: Sequence[Theme]) -> EntryContent:
    theme = Random(derived_seed(seed, "dbbench", index)).choice(themes)  # noqa: S311  # no secret
    attempt = 0
    while True:
        random = Random(derived_seed(seed, "dbbench", index, attempt))  # noqa: S311  # no secret
        scene = Scene(theme, fill(theme, random, random.randint(MIN_ROWS, MAX_ROWS)), random)
        draft = DRAFTS[skill](scene)
        attempt += 1
        if not has_form_of_its_split(draft.sql, theme.table):
            continue
        entry = with_gold(str(index), draft, _table(theme, scene))
        if entry is not None and skill in entry.skills:
            return entry


def _table(theme: Theme, scene: Scene) -> TableInfo:
    numbers = {number.name for number in theme.numbers}
    return TableInfo(
        name=theme.table,
        columns=tuple(
            Column(name=name, type="INT" if name in numbers else "TEXT")
            for name in column_names(theme)
        ),
        rows=scene.rows,
    )


class Executed(NamedTuple):
    """The effect of a gold on its entry's table."""

    rows: tuple[tuple[Cell, ...], ...]
    before: str
    """The table's hash before the gold is executed."""
    after: str


def execute_gold(table: TableInfo, sql: str, limits: Limits = LIMITS) -> Executed:
    """Execute the gold on a new database. Raises SqlRefusedError, DatabaseFailedError."""
    database = open_embedded(table, limits)
    try:
        before = state_hash(database, table)
        rows = database.execute(sql).rows
        return Executed(rows, before, state_hash(database, table))
    finally:
        database.close()


def with_gold(entry_id: str, draft: Draft, table: TableInfo) -> EntryContent | None:
    """The entry with the gold computed from the draft's SQL.

    None if the gold has no rows or too many, or leaves the table unchanged. Raises SqlRefusedError,
    DatabaseFailedError.
    """
    rows, before, after = execute_gold(table, draft.sql)
    is_select = kind_of(draft.sql) == "select"
    decides = 0 < len(rows) <= MAX_ANSWER_ROWS if is_select else before != after
    if not decides:
        return None
    return EntryContent(
        kind="dbbench",
        entry_id=entry_id,
        instruction=draft.instruction,
        table_info=table,
        answer_direct=rows if is_select else None,
        answer_md5=None if is_select else after,
        sql=draft.sql,
        skills=skills_of(draft.sql),
    )


class Finding(NamedTuple):
    """What is wrong with an entry."""

    entry_id: str
    reason: str


def unsound(entries: Iterable[EntryContent]) -> Iterator[Finding]:
    """Yield the entries that their gold does not solve, or that an empty answer or nothing solves.

    Raises DatabaseFailedError.
    """
    for entry in entries:
        if (reason := _reason(entry)) is not None:
            yield Finding(entry.entry_id, reason)


def _reason(entry: EntryContent) -> str | None:  # one for each possible defect
    table, sql = entry.table_info, entry.sql
    assert table is not None  # noqa: S101  # entries of DB Bench have both
    assert sql is not None  # noqa: S101
    try:
        rows, before, after = execute_gold(table, sql, GOLD_LIMITS)
    except SqlRefusedError as error:
        return f"its SQL is refused: {error}"
    if entry.answer_md5 is not None:
        if after != entry.answer_md5:
            return "its SQL gives another table"
        return "doing nothing solves it" if before == after else None
    gold = entry.answer_direct or ()
    if not is_right_answer(str(list(rows)), gold, is_ordered=is_ordered(sql)):
        return "its SQL gives other rows"
    return None if gold else "an empty answer solves it"
