"""Whether entries are solved by their golds here, and neither by an empty answer nor by nothing."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from producer.agents.dbbench.data.gold_sql import is_ordered
from producer.agents.dbbench.data.judging import is_right_answer
from producer.agents.dbbench.data.setup import open_embedded
from producer.agents.dbbench.data.table_hash import table_hash
from producer.sql_execution import Limits, SqlRefusedError
from schemas.entry import EntryContent

LIMITS = Limits(num_rows=10_000, result_characters=10_000_000)
"""Of golds: their rows are not read."""


class Finding(NamedTuple):
    """What is wrong with an entry."""

    entry_id: str
    reason: str


def unsound(entries: Iterable[EntryContent]) -> Iterator[Finding]:
    """The entries that are wrong here, and why. DatabaseFailedError."""
    for entry in entries:
        reason = _reason(entry)
        if reason is not None:
            yield Finding(entry.entry_id, reason)


def _reason(entry: EntryContent) -> str | None:  # one for each thing that is wrong
    table, sql = entry.table_info, entry.sql
    assert table is not None  # noqa: S101  # entries of DB Bench have both
    assert sql is not None  # noqa: S101
    names = [column.name for column in table.columns]
    database = open_embedded(table, LIMITS)
    try:
        before = table_hash(database.table_rows(table.name, names))
        try:
            rows = database.execute(sql).rows
        except SqlRefusedError as error:
            return f"its SQL is refused: {error}"
        after = table_hash(database.table_rows(table.name, names))
    finally:
        database.close()
    if entry.answer_md5 is not None:
        if after != entry.answer_md5:
            return "its SQL gives another table"
        return "doing nothing solves it" if before == after else None
    gold = entry.answer_direct or ()
    if not is_right_answer(str(list(rows)), gold, is_ordered=is_ordered(sql)):
        return "its SQL gives other rows"
    return None if gold else "an empty answer solves it"
