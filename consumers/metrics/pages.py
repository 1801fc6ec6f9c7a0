"""`/metrics` and `/healthz`, alone or with the monitor's pages."""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from consumers.metrics.collector import registry_of
from consumers.metrics.probe import Probe
from consumers.monitor.answer import Answer
from consumers.monitor.server import Pages
from consumers.projection.activity import Activity

TEXT = "text/plain; charset=utf-8"
PATHS = ("/metrics", "/healthz")


class MetricsPages:
    """Thread-safe. `others`: pages for every other path; None: there is no other."""

    def __init__(self, probe: Probe, activity: Activity, others: Pages | None = None) -> None:
        self._activity = activity
        self._registry = registry_of(probe, activity)
        self._others = others

    def answer(self, path: str) -> Answer:
        """The answer to a path without its query."""
        if path == "/healthz":
            return self._health()
        if path == "/metrics":
            return Answer(200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry))
        if self._others is not None:
            return self._others.answer(path)
        return Answer(404, TEXT, f"This server has {' and '.join(PATHS)}.\n".encode())

    def _health(self) -> Answer:
        """200 while it projects or waits for another projector's lease; else 503 and why."""
        problem = self._activity.problem()
        if problem is not None:
            return Answer(503, TEXT, f"{problem}\n".encode())
        state = self._activity.describe()
        # An outage is an error only after a while.
        return Answer(
            200, TEXT, f"{'' if state.startswith('failing') else 'ok, '}{state}\n".encode()
        )
