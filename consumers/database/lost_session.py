"""A session that the server ended, or whose connection broke, while a command used it.

For the process's boundary, which must not import a driver: an error is known by its class's name
and SQLSTATE.
"""

ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"})
"""SQLSTATEs: admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout,
idle_in_transaction_session_timeout, transaction_timeout."""
CONNECTION_EXCEPTION = "08"
"""First characters of the SQLSTATEs of broken connections."""


def lost_session(error: BaseException) -> str | None:
    """The message for an error that a lost session caused; None for any other."""
    reason = _reason_of_loss(error)
    if reason is None:
        return None
    return (
        f"the database ended our session; uncommitted changes were rolled back: {reason}; run the"
        " same command again when the server answers (its log has the cause)"
    )


def _reason_of_loss(error: BaseException) -> str | None:
    if not _is_lost(error):
        return None
    # A later use of a lost session only raises that it is closed.
    first, earlier = error, error.__context__
    while earlier is not None:
        if _is_lost(earlier):
            first = earlier
        earlier = earlier.__context__
    return str(_original(first)).strip().partition("\n")[0]


def _original(error: BaseException) -> BaseException:
    # SQLAlchemy wraps the driver's error.
    return getattr(error, "orig", None) or error


def _is_lost(error: BaseException) -> bool:
    original = _original(error)
    names = {
        item.__name__ for item in type(original).__mro__ if item.__module__.startswith("psycopg2")
    }
    code = getattr(original, "pgcode", None)
    if code is not None:
        return code in ENDED or code.startswith(CONNECTION_EXCEPTION)
    if "OperationalError" in names:
        return True
    return "InterfaceError" in names and "connection already closed" in str(original)
