"""Copies operators' decisions into CUA_HOME, where a trainer without a database reads them.

The database is what counts. Every `cua-project parked` and `cua-project run` brings the file up to
date, so that a copy that was interrupted, or another host's, is completed by the next command.
"""

import fcntl
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg2

from consumers.database.connection import Cursor, connected
from consumers.errors import CuaProjectError, MismatchError
from consumers.tables import OPS_SCHEMA
from schemas.event import StreamPoint
from schemas.lock_holders import file_lock_holder
from schemas.operator_drops import Decision, Drop, encode_decision, read_decisions, standing

logger = logging.getLogger(__name__)

TURN_S = 3.0
"""Whoever has the file appends some lines; a process that has it for longer is stopped."""
POLL_S = 0.05


def read_stored_decisions(cursor: Cursor) -> list[Decision]:
    """Every decision in the database, oldest first; one that was taken back is two.

    Also of tables of an older revision, in which none could be taken back.
    """
    cursor.execute(
        "SELECT scope, stream, value_sha256, from_epoch, from_sequence, made_at, made_by, reason,"
        " (to_jsonb(stored) ->> 'undone_at')::timestamptz, to_jsonb(stored) ->> 'undone_by' FROM"
        f" {OPS_SCHEMA}.operator_drop AS stored"
    )
    decisions = []
    for scope, stream, hash_, epoch, sequence, *made in cursor.fetchall():
        made_at, made_by, reason, undone_at, undone_by = made
        point = None if epoch is None else StreamPoint(epoch, sequence)
        drop = Drop(scope, stream, hash_, point)
        decisions.append(Decision(drop, False, made_at, made_by, reason))  # noqa: FBT003  # a record's field
        if undone_at is not None:
            decisions.append(Decision(drop, True, undone_at, undone_by, None))  # noqa: FBT003  # a record's field
    return sorted(decisions, key=lambda decision: decision.made_at)


def copy_drops(cursor: Cursor, path: Path) -> int:
    """Append what the file lacks, synced to disk; how many lines. CuaProjectError.

    Decisions of other databases in the file are left alone.
    """
    stored = standing(read_stored_decisions(cursor))
    if not stored:
        return 0
    try:
        # Without the lock first: mostly the file has everything, and there is nothing to wait for.
        if not _missing(stored, path):
            return 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            _lock(file.fileno(), path)
            lines = _missing(stored, path)
            if lines:
                _cut_torn_end(path, file.fileno())
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
    except (OSError, ValueError) as error:
        message = (
            f"the decision is in the database, but not in {path}, where a trainer reads it:"
            f" {error}. Mend that, then run `cua-project parked list`"
        )
        raise CuaProjectError(message) from None
    return len(lines)


def fetch_drops(url: str, path: Path) -> int:
    """Bring the file up to date; how many lines are new. A database without tables has none.

    Changes nothing in the database. CuaProjectError, UnreachableError; MismatchError of a database
    that has lost its decisions.
    """
    with connected(url, "drops") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{OPS_SCHEMA}.operator_drop",))
        row = cursor.fetchone()
        if row is not None and row[0]:
            return copy_drops(cursor, path)
    # Imports SQLAlchemy, which an answer does without.
    from consumers.database.revision import Age, look
    from consumers.database.shape import describe, missing

    revision = look(url)
    if revision.age is Age.EMPTY:
        return 0
    revision.require_current()
    raise MismatchError(describe(missing(url)))


def refresh_drops_file(url: str, path: Path) -> None:
    """Bring the file up to date; a failure is logged, as it stops no projection."""
    try:
        with connected(url, "drops") as connection, connection.cursor() as cursor:
            copy_drops(cursor, path)
    except (CuaProjectError, psycopg2.Error) as error:
        logger.warning("%s", str(error).strip())


def _missing(stored: Mapping[Drop, Decision], path: Path) -> list[bytes]:
    """Lines of the decisions that the file does not have as they stand now."""
    known = standing(read_decisions(path))
    return [
        encode_decision(decision)
        for drop, decision in stored.items()
        if (known[drop].is_undone if drop in known else True) != decision.is_undone
    ]


def _lock(descriptor: int, path: Path) -> None:
    """Have the file alone. OSError, which names the holder, when another process keeps it."""
    deadline = time.monotonic() + TURN_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"it is locked by {file_lock_holder(path)}"
                raise OSError(message) from None
            time.sleep(POLL_S)
        else:
            return


def _cut_torn_end(path: Path, descriptor: int) -> None:
    """Remove a last line that was cut off while it was written."""
    content = path.read_bytes()
    os.ftruncate(descriptor, content.rfind(b"\n") + 1)
