"""A server of the two paths alone, for `--metrics-port`."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from consumers.errors import UsageError
from consumers.monitor.server import ADDRESS, MonitorServer, Pages

logger = logging.getLogger(__name__)


@contextmanager
def serving(pages: Pages, port: int | None, address: str = ADDRESS) -> Iterator[None]:
    """Serve until the end of the block, and say where; `port` None: nothing. UsageError."""
    if port is None:
        yield
        return
    try:
        server = MonitorServer(port, pages, address)
    except OSError as error:
        message = (
            f"cannot listen on {address} port {port} for metrics: {error.strerror}; choose another"
            " --metrics-port or --metrics-host"
        )
        raise UsageError(message) from None
    with server:
        thread = threading.Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="metrics",
            daemon=True,
        )
        thread.start()
        logger.info("metrics: %smetrics, health: %shealthz", server.url, server.url)
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
