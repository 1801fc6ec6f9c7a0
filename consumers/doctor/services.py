"""The log, the database and the blobs."""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from consumers.console import format_bytes
from consumers.database.connection import connected
from consumers.database.location import is_embedded, resolve_database, without_password
from consumers.database.migrate import schema_differences
from consumers.database.repeatable import mending_command
from consumers.database.revision import Age, look
from consumers.doctor.finding import Finding, failed, ok, warning
from consumers.errors import CuaProjectError
from consumers.garbage.stores import open_store
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from consumers.log.waiting import read_waiting
from consumers.tables import PROJECTION_VERSION
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES
from schemas.installation import Installation, without_secrets
from schemas.kafka_log import MAX_MESSAGE_BYTES, is_compacted, limits_of_age

OLDEST_POSTGRES = 140000
LONG_WAL_BYTES = 1_000_000_000
SKEW_S, FAR_SKEW_S = 2.0, 60.0


def look_at_log(installation: Installation) -> Iterator[Finding]:
    """The log answers; its topics are as ours should be."""
    reader = open_reader(installation)
    try:
        partitions = reader.partitions()
        num_records = sum(reader.end_offsets(partitions).values())
        where = (
            f"Kafka at {installation.kafka_bootstrap_servers}"
            if reader.kind == "kafka"
            else f"local, {installation.local_log_path}"
        )
        yield ok("log", f"{where}: {len(partitions)} partitions, {num_records:,} records")
        if reader.kind == "kafka":
            yield from _look_at_topics(reader, installation.topic_prefix)
            yield from _look_at_spool(installation, reader)
    finally:
        reader.close()
    wal = installation.local_log_path.with_name(f"{installation.local_log_path.name}-wal")
    if wal.exists() and wal.stat().st_size > LONG_WAL_BYTES:
        yield warning(
            "log",
            f"{wal} has {format_bytes(wal.stat().st_size)}",
            "a reader keeps the log from being folded up: look for a stopped process",
        )


def _look_at_topics(reader: LogReader, prefix: str) -> Iterator[Finding]:
    from consumers.log.kafka import KafkaLogReader

    assert isinstance(reader, KafkaLogReader)  # noqa: S101  # of its kind
    settings = reader.topic_settings()
    if not settings:
        yield ok("topics", f"none with the prefix {prefix} yet; the first trainer makes them")
    topics = {prefix + name for name in TOPIC_NAMES}
    for topic in sorted(topics - settings.keys() if settings else ()):
        yield failed(
            "topics",
            f"{topic} does not exist, others of the prefix do: the log counts as empty",
            "if it was deleted, the next `cua-train` command makes it again and sends what its disk"
            " has",
        )
    for topic, values in settings.items():
        found = list(_topic_problems(topic, values))
        yield from found
        if not found:
            yield ok("topics", f"{topic}: {values['partitions']} partitions, kept for ever")


def _topic_problems(topic: str, values: Mapping[str, str]) -> Iterator[Finding]:
    change = f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config"
    if int(values["partitions"]) < NUM_PARTITIONS:
        yield warning(
            "topics",
            f"{topic} has {values['partitions']} partitions, ours have {NUM_PARTITIONS}",
            "never add any: it would be another log, which nothing continues (docs/kafka.md)",
        )
    if is_compacted(values):
        yield failed(
            "topics", f"{topic} is compacted: events are lost", f"{change} cleanup.policy=delete"
        )
    for limit in limits_of_age(values):
        yield warning(
            "topics",
            f"{topic} deletes records ({limit}); a rebuild needs them all",
            f"{change} {limit.partition('=')[0]}=-1",
        )
    if int(values.get("max.message.bytes", MAX_MESSAGE_BYTES)) < MAX_MESSAGE_BYTES:
        yield warning(
            "topics",
            f"{topic} takes records up to {format_bytes(int(values['max.message.bytes']))}, an"
            f" event may have {format_bytes(MAX_MESSAGE_BYTES)}",
            f"{change} max.message.bytes={MAX_MESSAGE_BYTES}",
        )
    if values.get("message.timestamp.type", "LogAppendTime") != "LogAppendTime":
        yield warning(
            "topics",
            f"{topic} has the producers' times, which may go backwards within a partition",
            f"{change} message.timestamp.type=LogAppendTime. Existing records keep their times:"
            " continue existing trainings on the hosts that hold their state",
        )


def _look_at_spool(installation: Installation, reader: LogReader) -> Iterator[Finding]:
    path, now = installation.local_log_path, datetime.now(UTC)
    if number := read_waiting(path, reader.log_id, now).num_records:
        yield warning(
            "spool",
            f"{number:,} events of this machine are not in Kafka yet",
            "a running trainer or `cua-project up` sends them; without one, `cua-project ship`",
        )
    else:
        yield ok("spool", "everything is shipped")


def look_at_database(
    environ: Mapping[str, str],
    installation: Installation,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Finding]:
    """It answers, and its tables are this version's."""
    url = resolve_database(environ, installation)
    with connected(url, "doctor") as connection, connection.cursor() as cursor:
        before = now()
        cursor.execute(
            "SELECT clock_timestamp(), current_setting('server_version'),"
            " has_database_privilege(current_database(), 'CREATE')"
        )
        clock, version, may_create = cursor.fetchone()
        after = now()
        number = connection.server_version
    where = "embedded" if is_embedded(environ) else without_password(url)
    if number < OLDEST_POSTGRES:
        yield failed("database", f"{where}: PostgreSQL {version}", "use PostgreSQL 14 or newer")
    else:
        yield ok("database", f"{where}: PostgreSQL {version}; no extension is needed")
    if not may_create:
        yield warning(
            "database",
            "this role may not create schemas: rebuild will fail, and so will migrate without them",
            "docs/roles.md lists the roles and their GRANTs",
        )
    yield _skew((clock - before).total_seconds(), (clock - after).total_seconds())
    yield from _look_at_tables(url)


def _skew(since_before_s: float, since_after_s: float) -> Finding:
    """The database read its clock between two readings of ours."""
    skew_s = max(0.0, -since_before_s, since_after_s)
    text = f"the database's clock is {skew_s:.1f} s from this machine's"
    if skew_s > FAR_SKEW_S:
        return failed("database clock", text, "keep both by NTP: heartbeats look stale or young")
    if skew_s > SKEW_S:
        return warning("database clock", text, "keep both by NTP")
    return ok("database clock", "agrees with this machine's")


def _look_at_tables(url: str) -> Iterator[Finding]:
    revision = look(url)
    if revision.age is Age.EMPTY:
        yield warning("tables", "there are none yet", "`cua-project run` or `migrate` makes them")
        return
    try:
        revision.require_current()
    except CuaProjectError as error:
        problem, _, advice = str(error).rpartition("; ")
        yield failed("tables", problem, advice)
        return
    version = revision.projection_version
    if version is not None and version < PROJECTION_VERSION:
        problem = "their rows are not those of this version"
        yield failed("tables", problem, "run `cua-project rebuild`")
        return
    different = schema_differences(url)
    if different:
        yield failed(
            "tables",
            f"they differ from their definition: {'; '.join(different[:3])}"
            + (f" and {len(different) - 3} more" if len(different) > 3 else ""),  # noqa: PLR2004
            f"run `cua-project {mending_command(different)}`; an index of yours may stay",
        )
    else:
        yield ok("tables", f"revision {revision.newest}, as defined")


def look_at_blobs(installation: Installation) -> Iterator[Finding]:
    """The store can be listed and, where it is a folder, written."""
    folder = installation.blobs_folder
    if folder is not None and folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        yield failed("blobs", f"{folder} cannot be written", "correct its owner, or CUA_BLOBS")
        return
    store = open_store(installation)
    has_any = next(iter(store.blobs()), None) is not None
    yield ok("blobs", f"{without_secrets(installation.blobs_url)}{'' if has_any else ': empty'}")
