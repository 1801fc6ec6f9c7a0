"""The running projector, according to the lease."""

from datetime import datetime
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.database.lease import current_holder
from consumers.tables import OPS_SCHEMA


class ProjectorStatus(NamedTuple):
    """The projector that holds the lease, and what the last one reported."""

    holder: str | None
    """Host, process id and a nonce; None: no projector runs."""
    since: str | None
    """When it took the lease."""
    caught_up_at: str | None
    """When it last stood at the log's end."""
    last_error: str | None
    last_error_at: str | None


def load_projector(cursor: Cursor) -> ProjectorStatus:
    """The running holder; without one, the last that the lease recorded."""
    living = current_holder(cursor)
    # As JSON, so that a lease without the newer columns reads as one that has not filled them.
    cursor.execute(f"SELECT to_jsonb(lease) FROM {OPS_SCHEMA}.lease AS lease")
    row = cursor.fetchone()
    lease: dict[str, str | None] = {} if row is None else row[0]
    return ProjectorStatus(
        None if living is None else living[0],
        None if living is None else _utc(lease.get("acquired_at") or lease.get("backend_start")),
        _utc(lease.get("caught_up_at")),
        lease.get("last_error"),
        _utc(lease.get("last_error_at")),
    )


def _utc(time: str | None) -> str | None:
    """PostgreSQL's JSON time as Python prints it."""
    return None if time is None else datetime.fromisoformat(time).isoformat()
