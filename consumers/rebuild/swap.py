"""Puts filled tables in the live ones' place: one transaction, too short to notice.

The schema `cua` stays, with everything that is not ours in it; our tables move to `cua_previous`
and the filled ones in. The old tables are locked before that, so that a reader's transaction comes
before or after the swap and never sees the new tables empty. A failed attempt changes nothing.
"""

import logging
import time
from collections.abc import Callable
from uuid import uuid4

import psycopg2

from consumers.database.connection import Connection, Cursor
from consumers.database.dependants import (
    TABLE_NAMES,
    create_schema,
    drop_schema,
    find_dependants,
    quoted,
)
from consumers.database.shape import LISTED, find_problems
from consumers.database.side_schemas import SideSchema, mark
from consumers.errors import CuaProjectError, MismatchError, NotFoundError, UnreachableError
from consumers.projection.positions import Positions, load_positions
from consumers.rebuild.carry import (
    execute_all,
    make_plan,
    require_nothing_refused,
    run_before,
)
from consumers.rebuild.older_snapshots import OlderSnapshots
from consumers.rebuild.plan import Plan
from consumers.rebuild.waiting import Awaited, Patience
from consumers.tables import PREVIOUS_SCHEMA as PREVIOUS
from consumers.tables import SCHEMA

logger = logging.getLogger(__name__)

LOCK_TIMEOUT_MS = 50
"""The longest wait for all locks together, and so the longest that a reader waits behind us."""
PROJECTOR_TIMEOUT_MS = 2_000
"""The longest wait for a projector's transaction; readers do not notice it."""
SNAPSHOTS_S = 0.2
"""The longest wait, with projectors blocked, for snapshots older than the last rows; statements of
everyday length have gone by then."""
SNAPSHOTS_PAUSE_S = 0.01
"""Between two looks at them."""
ABANDONED_S = 60
"""A swap whose process was stopped is rolled back by the server after so long between two
statements."""
STOPPED_S = 5
"""The same while readers wait for it."""


def swap(
    connection: Connection,
    filled: str,
    catch_up: Callable[[Positions], None],
    patience: Patience,
) -> None:
    """Make the tables of `filled` live; the old ones become `cua_previous`.

    `catch_up(positions)` must bring them to at least the live positions; it is called while
    projectors are blocked but readers are not. LimitExceededError, naming who holds the tables or
    has a snapshot that is older than their rows, when `patience` ends; CuaProjectError, naming it,
    for what cannot be carried. Then nothing has changed.
    """
    run_before(connection, filled)
    awaited = Awaited(OlderSnapshots())

    def attempt(cursor: Cursor) -> Plan:
        # Kept until this transaction succeeds.
        drop_schema(cursor, PREVIOUS)
        if _lock_out_projectors(cursor):
            catch_up(load_positions(cursor, SCHEMA))
        awaited.older.note(cursor)
        _require_gone(cursor, awaited.older)
        # Empty afterwards, and no finished replay any more.
        mark(cursor, SideSchema(filled, "rebuild", is_finished=False, details={}))
        return _exchange(cursor, filled, awaited)

    _finish(connection, _until_done(connection, attempt, patience, awaited))


def swap_back(connection: Connection, patience: Patience) -> None:
    """Make `cua_previous` live, and the live tables `cua_previous`; projectors continue from there.

    NotFoundError when there is none; otherwise raises what `swap` raises.
    """
    run_before(connection, PREVIOUS)
    # Of snapshots none: what was live once was filled before any of them.
    awaited = Awaited(OlderSnapshots())

    def attempt(cursor: Cursor) -> Plan:
        aside = f"{PREVIOUS}_{uuid4().hex[:8]}"
        _lock_out_projectors(cursor)
        cursor.execute(f"ALTER SCHEMA {quoted(PREVIOUS)} RENAME TO {quoted(aside)}")
        plan = _exchange(cursor, aside, awaited)
        drop_schema(cursor, aside)
        return plan

    _finish(connection, _until_done(connection, attempt, patience, awaited))


def require_previous(cursor: Cursor, revision: str | None) -> None:
    """NotFoundError unless a rebuild left tables of this revision; MismatchError of broken ones."""
    cursor.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s",
        (PREVIOUS,),
    )
    row = cursor.fetchone()
    # Without a description: left by a version that knew no other revision.
    if row is None or row[0] not in {None, _description(revision)}:
        message = (
            f"there is nothing to go back to: no rebuild has left a schema {PREVIOUS} since the"
            " last migration"
        )
        raise NotFoundError(message)
    if broken := [
        find_problem.text
        for find_problem in find_problems(cursor, [PREVIOUS])
        if find_problem.is_fatal
    ]:
        more = f" and {len(broken) - LISTED} more" if len(broken) > LISTED else ""
        message = (
            f"the tables that the last rebuild replaced were broken: {'; '.join(broken[:LISTED])}"
            f"{more}; the live ones stay"
        )
        raise MismatchError(message)


def _description(revision: str | None) -> str:
    return f"tables that cua-project rebuild replaced; revision {revision}"


def _until_done(
    connection: Connection,
    attempt: Callable[[Cursor], Plan],
    patience: Patience,
    awaited: Awaited,
) -> Plan:
    """One transaction, tried again while others hold a lock on the tables or an older snapshot."""
    while True:
        connection.rollback()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(
                    f"SET LOCAL lock_timeout = {PROJECTOR_TIMEOUT_MS}; SET LOCAL"
                    f" idle_in_transaction_session_timeout = '{ABANDONED_S}s'"
                )
                return attempt(cursor)
        except (
            psycopg2.errors.QueryCanceled,
            psycopg2.errors.LockNotAvailable,
            psycopg2.errors.DeadlockDetected,
            _ChangedError,
            _OlderError,
        ):
            connection.rollback()
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            message = f"the database ended the swap's session: {str(error).strip()}"
            raise UnreachableError(message) from None
        patience.wait(connection, awaited)


def _lock_out_projectors(cursor: Cursor) -> bool:
    """Projectors wait from here on, readers do not; False when there are no positions."""
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.reader_position",))
    row = cursor.fetchone()
    if row is None or not row[0]:
        return False
    cursor.execute(f"LOCK TABLE {SCHEMA}.reader_position IN EXCLUSIVE MODE")
    return True


class _OlderError(Exception):
    """Somebody's snapshot is older than the new rows."""


def _require_gone(cursor: Cursor, older: OlderSnapshots) -> None:
    """_OlderError unless the older snapshots end in a moment."""
    deadline = time.monotonic() + SNAPSHOTS_S
    while older.remaining(cursor):
        if time.monotonic() >= deadline:
            raise _OlderError
        time.sleep(SNAPSHOTS_PAUSE_S)


class _ChangedError(Exception):
    """Somebody made an object that depends on our tables after we had looked."""


def _exchange(cursor: Cursor, filled: str, awaited: Awaited) -> Plan:
    """Our live tables become `cua_previous`, those of `filled` live; what hangs on them stays."""
    cursor.execute(create_schema(SCHEMA))
    plan = make_plan(cursor, filled)
    awaited.relations = frozenset(plan.relations)
    require_nothing_refused(plan)
    execute_all(cursor, plan.before)
    dependants = find_dependants(cursor, SCHEMA)
    cursor.execute("SELECT version_num FROM cua_ops.alembic_version LIMIT 1")
    revision = cursor.fetchone()
    cursor.execute(f"CREATE SCHEMA {quoted(PREVIOUS)}")
    comment = _description(revision[0] if revision else None)
    cursor.execute(f"COMMENT ON SCHEMA {quoted(PREVIOUS)} IS %s", (comment,))
    cursor.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename = ANY(%s) ORDER BY 1",
        (SCHEMA, list(TABLE_NAMES)),
    )
    live = [row[0] for row in cursor.fetchall()]
    moves = [
        f"ALTER TABLE {quoted(SCHEMA, name)} SET SCHEMA {quoted(PREVIOUS)}" for name in live
    ] + [f"ALTER TABLE {quoted(filled, name)} SET SCHEMA {quoted(SCHEMA)}" for name in TABLE_NAMES]
    lock_tables(cursor, live, plan.locks)
    # From here on readers wait.
    if find_dependants(cursor, SCHEMA) != dependants:
        raise _ChangedError
    _execute_at_once(cursor, [*moves, *plan.after])
    return plan


def _execute_at_once(cursor: Cursor, statements: list[str]) -> None:
    """One round trip; when the database refuses one, the error names it."""
    try:
        cursor.execute(";\n".join(statements))
    except psycopg2.OperationalError:
        raise
    except psycopg2.Error as error:
        message = (
            f"an object that users added cannot be carried: {str(error).strip()}; drop it,"
            " then run the same command again"
        )
        raise CuaProjectError(message) from None


def lock_tables(cursor: Cursor, live: list[str], others: list[str]) -> None:
    """Lock every live table against readers too, not waiting longer than readers may.

    One round trip: between two locks no reader gets hold of the second.
    """
    cursor.execute(
        f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; SET LOCAL"
        f" idle_in_transaction_session_timeout = '{STOPPED_S}s'"
    )
    if live:
        tables = ", ".join(quoted(SCHEMA, name) for name in live)
        cursor.execute(f"SET LOCAL statement_timeout = {LOCK_TIMEOUT_MS}")
        cursor.execute(";".join([*others, f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE"]))
        cursor.execute("SET LOCAL statement_timeout = 0")


def _finish(connection: Connection, plan: Plan) -> None:
    """What may take long and blocks no session."""
    for statement in plan.validate:
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement)
        except psycopg2.Error as error:
            connection.rollback()
            logger.warning(
                "the swap is done, but this failed and is left to you: %s (%s)",
                statement,
                str(error).strip(),
            )
    for name in sorted(plan.publications):
        logger.warning(
            "the publication %s now has the new tables; subscribers have to copy them again: ALTER"
            " SUBSCRIPTION ... REFRESH PUBLICATION after truncating theirs",
            name,
        )
    if plan.names:
        logger.info("defined again for the new tables: %s", ", ".join(plan.names))
