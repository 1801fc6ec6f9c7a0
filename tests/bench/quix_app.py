"""quixstreams' PostgreSQL sink: `python quix_app.py SETTINGS`, a JSON object.

For its own environment, which has nothing of this project. Ends with SIGTERM.
"""

import json
import sys
from collections.abc import Callable

from psycopg2.extensions import AsIs
from quixstreams import Application
from quixstreams.sinks.community.postgresql import PostgreSQLSink

NULL = AsIs("NULL")


def with_nulls(nullable: list[str]) -> Callable[[dict[str, object]], None]:
    """The sink omits None, and then every column that a batch's first row lacks."""

    def replace(row: dict[str, object]) -> None:
        for name in nullable:
            if row[name] is None:
                row[name] = NULL

    return replace


settings = json.loads(sys.argv[1])
application = Application(
    settings["servers"],
    consumer_group=settings["group"],
    auto_offset_reset="earliest",
    commit_every=settings["batch_rows"],
    commit_interval=settings["batch_s"],
    consumer_extra_config=settings["consumer"],
    auto_create_topics=False,
    use_changelog_topics=False,
    loglevel="WARNING",
)
for table in settings["tables"]:
    topic = application.topic(table["name"], key_deserializer="str", value_deserializer="json")
    sink = PostgreSQLSink(
        **settings["database"],
        table_name=table["name"],
        schema_name=settings["schema"],
        schema_auto_update=False,
        primary_key_columns=table["key"],
        upsert_on_primary_key=True,
        include_metadata=False,
    )
    rows = application.dataframe(topic)
    rows = rows.update(with_nulls(table["nullable"]))
    rows.sink(sink)
application.run()
