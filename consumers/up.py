"""Database, projector and monitor in one process for one machine: what `cua-project up` runs.

The projector has a thread of its own and the monitor one per request, while the caller's thread
supervises them. What trainers left in the spool is sent by a process of its own. On a graceful stop
the projector first catches up with the end that the log has then, so that a training which has just
ended is in the tables.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import NamedTuple

from consumers.database.location import is_embedded, libpq_url, resolve_database
from consumers.database.readiness import make_ready, naming_what_is_missing
from consumers.database.silence import WATCH
from consumers.errors import SchemaBusyError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from consumers.metrics.pages import MetricsPages
from consumers.metrics.probe import Probe
from consumers.monitor.server import MonitorServer, Pages
from consumers.monitor.start import Listening, open_monitor
from consumers.projection.activity import Activity
from consumers.projection.loop import OutdatedTablesError, ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.shipping import shipping
from schemas.installation import Installation
from schemas.shutdown import Shutdown

logger = logging.getLogger(__name__)

CATCH_UP_S = 60.0
"""Limit of catching up after a graceful stop. A local log's events of one minute take a second."""
WATCH_EVERY_S = 1.0
DATABASE_EVERY_S = 5.0
"""Between checks that the embedded database runs; each is a connection of some milliseconds."""


class Addresses(NamedTuple):
    """URLs for the user."""

    monitor: str
    database: str
    """As psql takes it, password included."""


class OneMachine:
    """Runs until a shutdown is requested. `run` is called once."""

    def __init__(self, environ: Mapping[str, str], installation: Installation) -> None:
        self._environ = environ
        self._installation = installation
        self._error: BaseException | None = None
        self._activity = Activity(silence=WATCH.named)
        self._probe = Probe(installation, lambda: resolve_database(environ, installation))

    @property
    def metrics(self) -> MetricsPages:
        """`/metrics` and `/healthz` alone; the monitor's server has them, too."""
        return MetricsPages(self._probe, self._activity)

    def _with_metrics(self, pages: Pages) -> Pages:
        return MetricsPages(self._probe, self._activity, others=pages)

    def run(
        self,
        listening: Listening,
        shutdown: Shutdown,
        announce: Callable[[Addresses], None],
        is_wanted: Callable[[], bool],
        *,
        ships: bool = True,
    ) -> None:
        """Start everything, announce its addresses, and return after a shutdown.

        It also shuts down when `is_wanted` returns False. `ships`: send what trainers left, too.
        UsageError when the port is taken; UnreachableError, MismatchError and whatever else the
        projector cannot wait out.
        """
        # The log first: without Kafka nothing is started, and no address is announced.
        open_reader(self._installation).close()
        url = resolve_database(self._environ, self._installation)
        make_ready(url, embedded=is_embedded(self._environ))
        add_pages = self._with_metrics
        with open_monitor(self._environ, self._installation, listening, add_pages) as server:
            serving = threading.Thread(
                target=server.serve_forever,
                kwargs={"poll_interval": 0.1},
                name="monitor",
                daemon=True,
            )
            serving.start()
            try:
                with shipping(self._installation) if ships else nullcontext():
                    self._project_while_wanted(url, server, shutdown, announce, is_wanted)
            finally:
                server.shutdown()
                serving.join()

    def _project_while_wanted(
        self,
        url: str,
        server: MonitorServer,
        shutdown: Shutdown,
        announce: Callable[[Addresses], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        projecting = threading.Thread(target=self._project, args=(url, shutdown), name="projector")
        projecting.start()
        try:
            announce(Addresses(server.url, libpq_url(url)))
            checked_at = time.monotonic()
            while not shutdown.graceful.wait(WATCH_EVERY_S) and is_wanted() and self._error is None:
                if is_embedded(self._environ) and time.monotonic() - checked_at > DATABASE_EVERY_S:
                    # Restarts it, on the same port, if it was stopped from outside.
                    resolve_database(self._environ, self._installation)
                    checked_at = time.monotonic()
        finally:
            shutdown.graceful.set()
            projecting.join(CATCH_UP_S)
            shutdown.immediate.set()
            projecting.join()
        if self._error is not None:
            raise self._error

    def _project(self, url: str, shutdown: Shutdown) -> None:
        try:
            reader = open_reader(self._installation)
            try:
                projection = ProjectionLoop(reader, url, activity=self._activity)
                with naming_what_is_missing(url):
                    self._project_rebuilding(projection, reader, url, shutdown)
                    projection.run_once(CATCH_UP_S, shutdown.immediate)
            finally:
                reader.close()
        except BaseException as error:  # noqa: BLE001  # the thread's boundary: `run` raises it again
            self._error = error

    def _project_rebuilding(
        self, projection: ProjectionLoop, reader: LogReader, url: str, shutdown: Shutdown
    ) -> None:
        """Project until a shutdown; embedded tables of an older version are rebuilt."""
        while True:
            try:
                projection.run_forever(shutdown.graceful)
            except OutdatedTablesError:
                if not is_embedded(self._environ):
                    raise
            else:
                return
            logger.info("the tables are of an older version; rebuilding them from the log")
            try:
                rebuild(reader, url)
            except SchemaBusyError:
                # Another `up` or a user is at it.
                shutdown.graceful.wait(WATCH_EVERY_S)
