"""Assembles the monitor of an installation: its database, its screenshots and a port."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from errno import EACCES, EADDRINUSE
from typing import NamedTuple

from sqlalchemy import Engine

from consumers.database.location import configured_url, database_engine, resolve_database
from consumers.errors import UsageError
from consumers.monitor.access import Access
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.feed import table_feed
from consumers.monitor.pages import Pages
from consumers.monitor.server import ADDRESS, DEFAULT_PORT, MonitorServer
from consumers.monitor.server import Pages as Served
from schemas.installation import Installation

logger = logging.getLogger(__name__)


OPEN_TO_ALL = "no --token-file: who can reach %s can read every training"
WITHOUT_TLS = "no TLS: who can read the traffic of %s can read the token"


class Listening(NamedTuple):
    """A user's settings of the monitor's server."""

    port: int | None = None
    """None: the default one, or a free one if that is taken."""
    host: str = ADDRESS
    access: Access | None = None
    """None: whoever reaches the address may read."""


def open_monitor(
    environ: Mapping[str, str],
    installation: Installation,
    listening: Listening,
    add_pages: Callable[[Served], Served] | None = None,
) -> MonitorServer:
    """A server that listens but does not serve yet.

    `add_pages`: adds other pages to the monitor's. UsageError when the port or the address cannot
    be used or the database's URL is malformed.
    """
    configured_url(environ)  # a mistake in it is reported here, not by every page

    def open_engine() -> Engine:
        return database_engine(resolve_database(environ, installation))

    store, host = ScreenshotStore(installation), listening.host
    own = Pages(open_engine, store, lambda: datetime.now(UTC))
    pages: Served = own if add_pages is None else add_pages(own)
    last: OSError | None = None
    for port in (DEFAULT_PORT, 0) if listening.port is None else (listening.port,):
        try:
            server = MonitorServer(port, pages, host, table_feed(own.tables), listening.access)
        except OSError as error:
            last = error
            continue
        if not server.is_loopback:
            logger.warning(WITHOUT_TLS if listening.access else OPEN_TO_ALL, host)
        return server
    assert last is not None  # noqa: S101  # at least one port was tried
    if last.errno in {EADDRINUSE, EACCES}:
        message = (
            f"cannot listen on port {listening.port}: {last.strerror}; choose another --port, or"
            " omit it to get a free one"
        )
        raise UsageError(message)
    message = f"cannot listen on {host}: {last.strerror}; give an address of this machine"
    raise UsageError(message)
