"""How migrations run: online only.

`consumers.database.migrate` passes its connection in; the `alembic` command connects to the
installation's database. The revision is stored in `cua_ops`, which no rebuild replaces.
"""

import os
from collections.abc import Collection

from alembic import context
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, pool, text

from consumers.database.dependants import create_schema
from consumers.database.known_revisions import newest_revision
from consumers.database.location import open_watched, resolve_database
from consumers.database.repeatable import WITHOUT_COMMENTS, write_repeatable
from consumers.tables import OPS_SCHEMA, SCHEMA
from consumers.tables.comments import commented_metadata

OURS = {SCHEMA, OPS_SCHEMA}


def include_name(name: str | None, type_: str, parent_names: dict[str, str | None]) -> bool:
    """Compare only our two schemas, without alembic's own table."""
    if type_ == "schema":
        return name in OURS
    return not (
        type_ == "table"
        and name == "alembic_version"
        and parent_names.get("schema_name") == OPS_SCHEMA
    )


def finish(*, ctx: MigrationContext, heads: Collection[str], **_: object) -> None:
    """Write comments and views once the newest revision is reached."""
    if set(heads) == {newest_revision()}:
        assert ctx.connection is not None  # noqa: S101  # migrations run online only
        write_repeatable(ctx.connection)


def run(connection: Connection) -> None:
    """Migrate over one connection, in one transaction."""
    # With `cua` first in the role's search_path, the inspector would report its tables as those of
    # the default schema, without a name.
    connection.execute(text("SET LOCAL search_path TO public"))
    connection.dialect.default_schema_name = "public"
    connection.execute(text(create_schema(OPS_SCHEMA)))
    context.configure(
        connection=connection,
        target_metadata=commented_metadata(),
        include_schemas=True,
        include_name=include_name,
        version_table_schema=OPS_SCHEMA,
        compare_type=True,
        compare_server_default=True,
        on_version_apply=finish,
        autogenerate_plugins=WITHOUT_COMMENTS,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = resolve_database(os.environ)
    engine = create_engine(url, poolclass=pool.NullPool, creator=lambda: open_watched(url))
    with engine.begin() as own:
        run(own)
