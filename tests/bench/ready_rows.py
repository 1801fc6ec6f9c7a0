"""The rows of filled tables, ready-made in Kafka: a topic for each table, a JSON object for a row.

An object has every column; documents are JSON text, as both peers pass them on without parsing.
"""

import json
import zlib
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import psycopg2
import sqlalchemy as sa
from kafka.admin import KafkaAdminClient
from sqlalchemy.dialects.postgresql import JSONB

from consumers.database.location import libpq_url
from consumers.tables import ROW_TABLES
from consumers.tables.base import SCHEMA
from producer.log.writer import Record
from schemas.catalogue import NUM_PARTITIONS
from schemas.kafka_log import TOPIC_SETTINGS
from tests.bench.kafka_loading import KafkaLoader

ROWS_AT_ONCE = 20_000
LEAST_SHARE = 0.01
CONNECT_TYPES: tuple[tuple[type, dict[str, Any]], ...] = (
    (sa.Uuid, {"type": "string", "name": "io.debezium.data.Uuid"}),
    (
        JSONB,
        {
            "type": "string",
            "name": "io.debezium.data.Json",
            "parameters": {"__debezium.source.column.type": "JSONB"},
        },
    ),
    (sa.DateTime, {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}),
    (sa.String, {"type": "string"}),
    (sa.Boolean, {"type": "boolean"}),
    (sa.BigInteger, {"type": "int64"}),
    (sa.Integer, {"type": "int32"}),
    (sa.Double, {"type": "double"}),
)


class ReadyTable(NamedTuple):
    """A table whose rows are in the topic of its name."""

    name: str
    key: tuple[str, ...]
    """Columns of the primary key."""
    nullable: tuple[str, ...]
    rows: int
    digest: int
    """Of all rows, in any order."""
    connect_schema: str
    """Of a row, as Kafka Connect's JSON."""


class RowCount(NamedTuple):
    """What a table holds."""

    rows: int
    digest: int


def held_rows(url: str, names: Sequence[str]) -> dict[str, RowCount]:
    """Number and digest of the rows of each table."""
    with closing(psycopg2.connect(libpq_url(url))) as connection, connection.cursor() as cursor:
        found = {}
        for name in names:
            cursor.execute(
                "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)"
                f' FROM "{SCHEMA}"."{name}" t'
            )
            rows, digest = cursor.fetchone()
            found[name] = RowCount(rows, int(digest))
        return found


def table_names() -> list[str]:
    """Of every table that is folded from the log."""
    return [table.__tablename__ for table in ROW_TABLES]


def load_rows(url: str, servers: str, port: int) -> list[ReadyTable]:
    """Load the rows of the tables that hold at least `LEAST_SHARE` of all."""
    held = held_rows(url, table_names())
    least = LEAST_SHARE * sum(count.rows for count in held.values())
    tables = [
        described(table.__table__, held[table.__tablename__])
        for table in ROW_TABLES
        if held[table.__tablename__].rows >= least
    ]
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        wanted = {"num_partitions": NUM_PARTITIONS, "configs": TOPIC_SETTINGS}
        names = [table.name for table in tables]
        admin.create_topics(dict.fromkeys(names, wanted), wait_for_metadata=True)
    with (
        KafkaLoader("127.0.0.1", port) as loader,
        closing(psycopg2.connect(libpq_url(url))) as connection,
    ):
        for table in tables:
            _load(connection, loader, table)
    return tables


def described(table: Any, count: RowCount) -> ReadyTable:
    """A table of SQLAlchemy that holds these rows."""
    fields = [
        {"field": column.name, "optional": column.nullable} | _connect_type(column.type)
        for column in table.columns
    ]
    return ReadyTable(
        table.name,
        tuple(column.name for column in table.primary_key.columns),
        tuple(column.name for column in table.columns if column.nullable),
        count.rows,
        count.digest,
        json.dumps({"type": "struct", "optional": False, "fields": fields}),
    )


def _connect_type(column_type: object) -> dict[str, Any]:
    return next(described for kind, described in CONNECT_TYPES if isinstance(column_type, kind))


def _load(connection: Any, loader: KafkaLoader, table: ReadyTable) -> None:
    """Every row into the partition that its key hashes to."""
    fields = json.loads(table.connect_schema)["fields"]
    columns = ", ".join(
        f'"{field["field"]}"::text AS "{field["field"]}"'
        if field.get("name") == "io.debezium.data.Json"
        else f'"{field["field"]}"'
        for field in fields
    )
    key = " || '/' || ".join(f'"{name}"::text' for name in table.key)
    with connection, connection.cursor("rows") as cursor:
        cursor.itersize = ROWS_AT_ONCE
        cursor.execute(
            f"SELECT {key}, (SELECT row_to_json(r)::text FROM (SELECT {columns}) r)"
            f' FROM "{SCHEMA}"."{table.name}"'
        )
        while found := cursor.fetchmany(ROWS_AT_ONCE):
            placed: dict[int, list[Record]] = {}
            for name, value in found:
                place = zlib.crc32(name.encode()) % NUM_PARTITIONS
                placed.setdefault(place, []).append(Record(table.name, name, value.encode()))
            for partition, records in placed.items():
                loader.append(table.name, partition, records)
