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
    cursor.execute(
        f"SELECT acquired_at, caught_up_at, last_error, last_error_at FROM {OPS_SCHEMA}.lease"
    )
    since, caught_up_at, last_error, last_error_at = cursor.fetchone() or (None,) * 4
    return ProjectorStatus(
        None if living is None else living[0],
        None if living is None else _text(since),
        _text(caught_up_at),
        last_error,
        _text(last_error_at),
    )


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
