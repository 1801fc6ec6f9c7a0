"""The hash of a table's state, as DB Bench computes it in MySQL.

    md5(group_concat(rowhash order by rowhash)) of substring(md5(concat_ws(',', columns...)), 1, 5)

NULL is skipped in a row; an empty table has the hash "None".
"""

import hashlib
from collections.abc import Iterable
from typing import Final

EMPTY: Final = "None"
ROW_DIGITS: Final = 5


def table_hash(rows: Iterable[Iterable[int | float | str | None]]) -> str:
    """32 hex digits, whatever the order of the rows; `EMPTY` without any."""
    hashes = sorted(map(row_hash, rows))
    return _md5(",".join(hashes)) if hashes else EMPTY


def row_hash(row: Iterable[int | float | str | None]) -> str:
    """Five hex digits."""
    return _md5(",".join(_text(value) for value in row if value is not None))[:ROW_DIGITS]


def _text(value: float | str) -> str:
    """As MySQL writes it: a whole number without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
