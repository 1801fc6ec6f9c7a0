"""Train and held-out entries, split by the name of their table: held-out tables are never seen."""

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

from schemas.entry import EntryContent

Split = Literal["train", "held_out"]
ONE_IN: Final = 4
"""Of all names, this part is held out."""


def split_of(entry: EntryContent) -> Split:
    """By the table's name alone, so that it is the same in every data set."""
    return split_of_table("" if entry.table_info is None else entry.table_info.name)


def split_of_table(name: str) -> Split:
    """Of the entries about this table."""
    digest = hashlib.sha256(name.lower().encode()).digest()
    return "held_out" if digest[0] % ONE_IN == 0 else "train"


def of_split(entries: Iterable[EntryContent], split: Split | None) -> list[EntryContent]:
    """Those of the split; None: all."""
    return [entry for entry in entries if split in {None, split_of(entry)}]
