"""Database, projector and monitor in one process, for one machine: what `cua-project up` runs.

The projector has a thread of its own, the monitor one per request; the caller's thread watches over
them. On the way out the projector goes on to the end that the log has then, so that whoever stopped
writing finds everything in the tables.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumers.database.location import is_embedded, libpq_url, resolve_database
from consumers.database.readiness import make_ready
from consumers.log.open import open_reader
from consumers.monitor.server import MonitorServer
from consumers.monitor.start import open_monitor
from consumers.projection.loop import ProjectionLoop
from consumers.shutdown import Shutdown
from schemas.installation import Installation

CATCH_UP_S = 60.0
"""How long the end of the log is pursued after a stop; a local log of a minute's events takes a
second."""
WATCH_EVERY_S = 1.0
DATABASE_EVERY_S = 5.0
"""How often the embedded database is looked after: a connection costs some milliseconds."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to look."""

    monitor: str
    database: str
    """As psql takes it, password included."""


class OneMachine:
    """Runs until it is told to stop. `run` is called once."""

    def __init__(self, environ: Mapping[str, str], installation: Installation, say: Say) -> None:
        self._environ = environ
        self._installation = installation
        self._say = say
        self._error: BaseException | None = None

    def run(
        self,
        port: int | None,
        shutdown: Shutdown,
        announce: Callable[[Addresses], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        """Start everything, announce where it is, and return when `wishes` or `is_wanted` say so.

        UnreachableError, MismatchError and what else the projector cannot wait out end it;
        UsageError: the port is taken.
        """
        url = resolve_database(self._environ, self._installation)
        make_ready(url, embedded=is_embedded(self._environ))
        with open_monitor(self._environ, self._installation, port) as server:
            serving = threading.Thread(
                target=server.serve_forever,
                kwargs={"poll_interval": 0.1},
                name="monitor",
                daemon=True,
            )
            serving.start()
            try:
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
            looked_at = time.monotonic()
            while not shutdown.stop.wait(WATCH_EVERY_S) and is_wanted() and self._error is None:
                if is_embedded(self._environ) and time.monotonic() - looked_at > DATABASE_EVERY_S:
                    # One that was ended from outside comes back on the same port.
                    resolve_database(self._environ, self._installation)
                    looked_at = time.monotonic()
        finally:
            shutdown.stop.set()
            projecting.join(CATCH_UP_S)
            shutdown.immediate.set()
            projecting.join()
        if self._error is not None:
            raise self._error

    def _project(self, url: str, shutdown: Shutdown) -> None:
        try:
            reader = open_reader(self._installation)
            try:
                projection = ProjectionLoop(reader, url)
                projection.run_forever(shutdown.stop)
                projection.run_once(CATCH_UP_S, shutdown.immediate)
            finally:
                reader.close()
        except BaseException as error:  # noqa: BLE001  # the thread's boundary: raised again in the one that waits for it
            self._error = error
