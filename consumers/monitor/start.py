"""Assembles the monitor of an installation: its database, its screenshots and a port."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy import Engine

from consumers.database.location import configured_url, database_engine, resolve_database
from consumers.errors import UsageError
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from consumers.monitor.server import ADDRESS, DEFAULT_PORT, MonitorServer
from consumers.monitor.server import Pages as Served
from schemas.installation import Installation


def open_monitor(
    environ: Mapping[str, str],
    installation: Installation,
    port: int | None,
    beside: Callable[[Served], Served] | None = None,
    address: str = ADDRESS,
) -> MonitorServer:
    """A server that listens but does not serve yet. `port` None: the default, or a free one.

    `beside`: adds pages of others to the monitor's. UsageError when `port` or `address` cannot be
    used or the database's URL is malformed.
    """
    configured_url(environ)  # a mistake in it is reported here, not by every page

    def open_engine() -> Engine:
        return database_engine(resolve_database(environ, installation))

    pages: Served = Pages(open_engine, ScreenshotStore(installation), lambda: datetime.now(UTC))
    if beside is not None:
        pages = beside(pages)
    if port is not None:
        try:
            return MonitorServer(port, pages, address)
        except OSError as error:
            message = (
                f"cannot listen on port {port}: {error.strerror}; choose another --port, or omit it"
                " to get a free one"
            )
            raise UsageError(message) from None
    try:
        return MonitorServer(DEFAULT_PORT, pages, address)
    except OSError:
        pass
    try:
        return MonitorServer(0, pages, address)
    except OSError as error:
        message = f"--host: cannot listen on {address}: {error.strerror}"
        raise UsageError(message) from None
