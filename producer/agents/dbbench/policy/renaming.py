"""Entries about tables of other names, so that a policy copies a table's name.

The tables of generated entries are few. A policy that is warmed up on them alone writes their names
by heart, and none of another table.
"""

import re
from collections.abc import Sequence
from random import Random

from producer.agents.dbbench.data.words import THEMES
from schemas.entry import EntryContent

NOUNS = {theme.table: theme.noun for theme in THEMES}


def renamed(entry: EntryContent, words: Sequence[str], random: Random) -> EntryContent:
    """The entry with two of `words` for its table and for a row of it.

    They occur nowhere else in the entry's columns, instruction and SQL.
    """
    table = entry.table_info
    if table is None or entry.sql is None:
        return entry
    columns = {column.name for column in table.columns}
    used = columns | {*re.findall(r"\w+", f"{entry.instruction} {entry.sql}")}
    name, noun = random.sample([word for word in words if word not in used], 2)
    new = {table.name: name, NOUNS.get(table.name, table.name): noun}

    def replaced(text: str) -> str:
        return re.sub(r"\w+", lambda word: new.get(word[0], word[0]), text)

    return entry.model_copy(
        update={
            "instruction": replaced(entry.instruction),
            "sql": replaced(entry.sql),
            "table_info": table.model_copy(update={"name": name}),
        }
    )
