"""What a database lets no session of ours do: a user mends that, and it is no bug of ours.

For the process's boundary, which must not import a driver: an error is known by its SQLSTATE.
"""

ADVICE = {
    "42501": (
        "connect as the role that owns the tables, or GRANT this role what docs/roles.md lists for"
        " it"
    ),
    "25006": (
        "connect to the primary, or, with default_transaction_read_only = off, let the role and the"
        " database write"
    ),
    "53100": "free some space on its disk, then run the same command again",
    "53200": (
        "give the server more memory, or raise max_locks_per_transaction where its shared memory"
        " ran out, then run the same command again"
    ),
    "53400": (
        "raise the limit that it names for this role (a superuser: ALTER ROLE name SET"
        " temp_file_limit = -1), then run the same command again"
    ),
    "57014": (
        "another session cancelled the statement (pg_cancel_backend), or a time limit of the"
        " server did; run the same command again"
    ),
    "P0001": (
        "a trigger or function of this database raised it: disable it (event triggers: ALTER EVENT"
        " TRIGGER name DISABLE) or let cua-project pass, then run the same command again"
    ),
}
"""SQLSTATE -> what to do: insufficient_privilege, read_only_sql_transaction, disk_full,
out_of_memory, configuration_limit_exceeded, query_canceled, raise_exception."""


def forbidden(error: BaseException) -> str | None:
    """The message for an error that a user mends; None for any other."""
    # SQLAlchemy wraps the driver's error.
    original = getattr(error, "orig", None) or error
    advice = ADVICE.get(str(getattr(original, "pgcode", None)))
    if advice is None:
        return None
    reason = str(original).strip().splitlines()[0]
    # Only the server knows that it is row-level security which keeps an owner out.
    if hint := getattr(getattr(original, "diag", None), "message_hint", None):
        reason = f"{reason}. {hint.removesuffix('.')}"
    return f"the database refuses this: {reason}; {advice}"
