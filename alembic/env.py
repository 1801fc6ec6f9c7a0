"""How migrations run: online only.

`consumers.database.migrate` passes its connection in; the `alembic` command connects to the
installation's database. The revision is stored in `cua_ops`, which no rebuild replaces.
"""

import os

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

from consumers.database.location import resolve_database
from consumers.tables import OPS_SCHEMA, SCHEMA, Base

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


def run(connection: Connection) -> None:
    """Migrate over one connection, in one transaction."""
    # With `cua` first in the role's search_path, the inspector would report its tables as those of
    # the default schema, without a name.
    connection.execute(text("SET LOCAL search_path TO public"))
    connection.dialect.default_schema_name = "public"
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {OPS_SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_schemas=True,
        include_name=include_name,
        version_table_schema=OPS_SCHEMA,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = create_engine(resolve_database(os.environ), poolclass=pool.NullPool)
    with engine.begin() as own:
        run(own)
