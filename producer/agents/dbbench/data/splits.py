"""Splits entries into train and held-out by their table's name; held-out tables are never seen.

Generated entries of the two splits also differ in the form of their golds (`gold_form`).
"""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

from producer.agents.dbbench.data.scene import THEMES, column_names
from producer.sql_data.gold_form import gold_form, is_held_out_form
from schemas.entry import EntryContent

Split = Literal["train", "held_out"]
ONE_IN: Final = 4
"""One in this many table names is held out."""
FORMS_HELD_OUT: Final = 2
"""One in this many gold forms is held out, among the forms that tables of both splits have columns
for."""


def split_of(entry: EntryContent) -> Split:
    """The entry's split, by its table's name alone, so that it is the same in every data set."""
    return split_of_table("" if entry.table_info is None else entry.table_info.name)


def split_of_table(name: str) -> Split:
    """The split of entries about this table."""
    digest = hashlib.sha256(name.lower().encode()).digest()
    return "held_out" if digest[0] % ONE_IN == 0 else "train"


def of_split(entries: Iterable[EntryContent], split: Split | None) -> list[EntryContent]:
    """Entries of the split; all entries if `split` is None."""
    return [entry for entry in entries if split in {None, split_of(entry)}]


def has_form_of_its_split(sql: str, table: str) -> bool:
    """Whether a generated entry about `table` may have this gold.

    If only tables of one split have columns for a form, it belongs to that split. Any other form is
    assigned by its hash.
    """
    return _form_split(gold_form(sql, "mysql", table), split_of_table(table)) == split_of_table(
        table
    )


@lru_cache(maxsize=65_536)
def _form_split(form: str, own: Split) -> Split:
    words = {*re.findall(r"\w+", form)}
    columns = words & {name for theme in THEMES for name in column_names(theme)}
    is_shared = any(
        columns <= {*column_names(theme)} for theme in THEMES if split_of_table(theme.table) != own
    )
    if not is_shared:
        return own
    return "held_out" if is_held_out_form(form, FORMS_HELD_OUT) else "train"
