"""Where the database is."""

from collections.abc import Mapping

from consumers.errors import UsageError


def resolve_database(environ: Mapping[str, str]) -> str:
    """The installation's database as a URL: DATABASE_URL."""
    if url := environ.get("DATABASE_URL"):
        return url
    message = "expected DATABASE_URL to name a PostgreSQL database, found it unset"
    raise UsageError(message)
