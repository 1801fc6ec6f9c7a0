"""The metrics, in Prometheus' terms."""

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from consumers.log.waiting import Waiting
from consumers.metrics.probe import Positions, Probe, Seen, TablesSeen
from consumers.projection.activity import Activity
from consumers.status.lag import PartitionStatus
from consumers.status.trainings import count_by_status
from consumers.tables import PROJECTION_VERSION
from schemas.distribution import DISTRIBUTION

PARTITION = ("topic", "partition")
STATES = ("starting", "projecting", "standby", "failing")


def registry_of(probe: Probe, activity: Activity) -> CollectorRegistry:
    """Our metrics with the process's own."""
    registry = CollectorRegistry(auto_describe=False)
    for register in (ProcessCollector, PlatformCollector, GCCollector):
        register(registry=registry)
    registry.register(_Ours(probe, activity))
    return registry


class _Ours(Collector):
    def __init__(self, probe: Probe, activity: Activity) -> None:
        self._probe = probe
        self._activity = activity

    def collect(self) -> Iterator[Metric]:
        """One look at log and database, and the projector's own state."""
        seen = self._probe.look()
        yield from _process(self._activity)
        yield from _reachable(seen)
        if seen.waiting is not None:
            yield from _spool(seen.waiting)
        if seen.log is not None and seen.log.partitions is not None and seen.tables is not None:
            yield from _lag(seen.log.partitions)
        if seen.log is not None:
            yield from _ends(seen.log.ends)
        if seen.tables is not None:
            yield from _tables(seen.tables)


def _process(activity: Activity) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "cua_build_info", "Always 1.", labels=("version", "projection_version")
    )
    info.add_metric((version(DISTRIBUTION), str(PROJECTION_VERSION)), 1)
    yield info
    state = GaugeMetricFamily(
        "cua_projector_state", "1 for what this process does.", labels=("state",)
    )
    for name in STATES:
        state.add_metric((name,), activity.state == name)
    yield state
    yield GaugeMetricFamily(
        "cua_projector_healthy",
        "0 when /healthz answers 503.",
        value=activity.problem() is None,
    )
    yield CounterMetricFamily(
        "cua_projector_events_applied",
        "Events that this process applied.",
        value=activity.num_events,
    )
    yield GaugeMetricFamily(
        "cua_projector_seconds_since_last_commit",
        "Since this process's last commit; before the first, since its start.",
        value=activity.seconds_since_commit,
    )


def _reachable(seen: Seen) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "cua_database_up", "Whether the database answers.", value=seen.tables is not None
    )
    yield GaugeMetricFamily("cua_log_up", "Whether the log answers.", value=seen.log is not None)


def _spool(waiting: Waiting) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "cua_spool_events",
        "Events in this home's spool that Kafka does not have.",
        value=waiting.num_records,
    )
    yield GaugeMetricFamily(
        "cua_spool_seconds", "Age of the oldest of them.", value=waiting.seconds
    )


def _lag(partitions: list[PartitionStatus]) -> Iterator[Metric]:
    events = GaugeMetricFamily(
        "cua_lag_events", "Records that are not in the tables yet.", labels=PARTITION
    )
    seconds = GaugeMetricFamily(
        "cua_lag_seconds", "Age of the oldest record not in the tables yet.", labels=PARTITION
    )
    positions = GaugeMetricFamily(
        "cua_position_offset", "Next offset to project.", labels=PARTITION
    )
    gone = GaugeMetricFamily(
        "cua_gone_events", "Records deleted before they were projected.", labels=PARTITION
    )
    for partition in partitions:
        labels = (partition.topic, str(partition.partition))
        events.add_metric(labels, partition.lag_events)
        seconds.add_metric(labels, partition.lag_seconds)
        positions.add_metric(labels, partition.position)
        gone.add_metric(labels, partition.num_gone)
    yield from (events, seconds, positions, gone)


def _ends(ends: Positions) -> Iterator[Metric]:
    family = GaugeMetricFamily("cua_log_end_offset", "The log's end.", labels=PARTITION)
    for at, end in ends.items():
        family.add_metric((at.topic, str(at.partition)), end)
    yield family


def _tables(tables: TablesSeen) -> Iterator[Metric]:
    yield GaugeMetricFamily("cua_events_applied", "Events in the tables.", value=tables.num_events)
    yield GaugeMetricFamily(
        "cua_duplicates", "Records that were applied before.", value=tables.unapplied.duplicates
    )
    yield GaugeMetricFamily("cua_parked", "Parked records.", value=tables.unapplied.parked)
    yield GaugeMetricFamily("cua_fenced", "Fenced records.", value=tables.unapplied.fenced)
    yield GaugeMetricFamily(
        "cua_foreign",
        "Records outside of their stream's partition.",
        value=tables.unapplied.foreign,
    )
    yield GaugeMetricFamily(
        "cua_gaps", "Streams that wait for a missing record.", value=tables.unapplied.gaps
    )
    yield GaugeMetricFamily(
        "cua_gap_seconds",
        "Age of the oldest record that waits for one which the log does not have.",
        value=tables.gap_seconds,
    )
    yield GaugeMetricFamily(
        "cua_dropped_streams",
        "Streams whose rest an operator dropped.",
        value=tables.unapplied.dropped,
    )
    unapplied = GaugeMetricFamily(
        "cua_unapplied_records", "Records that are not applied.", labels=("state", "kind")
    )
    for labels, count in sorted(tables.by_kind.items()):
        unapplied.add_metric(labels, count)
    yield unapplied
    trainings = GaugeMetricFamily("cua_trainings", "Trainings.", labels=("status",))
    for status, count in sorted(count_by_status(tables.trainings).items()):
        trainings.add_metric((status,), count)
    yield trainings
    yield GaugeMetricFamily(
        "cua_trainings_stale",
        "Trainings at work without a heartbeat for a minute.",
        value=sum(training.stale for training in tables.trainings),
    )
    yield GaugeMetricFamily(
        "cua_trainings_parked",
        "Trainings of which some stream is parked.",
        value=sum(training.parked for training in tables.trainings),
    )
