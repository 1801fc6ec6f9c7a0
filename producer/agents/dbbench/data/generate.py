"""Generated entries: balanced over skills, with golds that were computed by running their SQL."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from producer.agents.dbbench.data.drafts import DRAFTS
from producer.agents.dbbench.data.gold_sql import kind_of
from producer.agents.dbbench.data.scene import Draft, Scene, column_names, fill
from producer.agents.dbbench.data.setup import LIMITS, open_embedded
from producer.agents.dbbench.data.skills import SKILLS, skills_of
from producer.agents.dbbench.data.splits import has_form_of_its_split
from producer.agents.dbbench.data.table_hash import table_hash
from producer.agents.dbbench.data.words import THEMES, Theme
from producer.seeds import derived_seed
from schemas.entry import Column, EntryContent, TableInfo

MIN_ROWS: Final = 20
MAX_ROWS: Final = 50
MAX_ANSWER_ROWS: Final = 6
"""Of a gold: an answer that a small policy can write."""


def generate(
    num_samples: int,
    seed: int,
    skills: Sequence[str] = SKILLS,
    *,
    themes: Sequence[Theme] = THEMES,
) -> Iterator[EntryContent]:
    """As many entries, the skills in turn. The same seed gives the same entries.

    `themes`: what their tables may be about.

    Every entry is solved by its gold, and neither by an empty answer nor by doing nothing. No gold
    about a held-out table has the form of one about another table, for any seeds.
    DatabaseFailedError.
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


def with_gold(entry_id: str, draft: Draft, table: TableInfo) -> EntryContent | None:
    """The entry with the gold that its SQL gives; None where it decides nothing.

    SqlRefusedError, DatabaseFailedError.
    """
    names = [column.name for column in table.columns]
    database = open_embedded(table, LIMITS)
    try:
        before = table_hash(database.table_rows(table.name, names))
        rows = database.execute(draft.sql).rows
        after = table_hash(database.table_rows(table.name, names))
    finally:
        database.close()
    is_select = kind_of(draft.sql) == "select"
    if is_select and not 0 < len(rows) <= MAX_ANSWER_ROWS:
        return None
    if not is_select and before == after:
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
