"""The table `group` under a name that needs no quotes in SQL."""

from sqlalchemy.dialects import postgresql

from consumers.tables.group import Group
from consumers.tables.view import Column, View

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's
_COLUMNS = Group.__table__.columns

ROLLOUT_GROUP = View(
    "rollout_group",
    "Every group with the name of its training: the table `group`, whose name SQL reserves.",
    (
        Column("run_name", "text", "Name of its training; NULL: none, or not projected yet."),
        *(
            Column(each.name, str(each.type.compile(dialect=_DIALECT)).lower(), "As in `group`.")
            for each in _COLUMNS
        ),
    ),
    f"""
SELECT training.run_name, {", ".join(f'"group".{each.name}' for each in _COLUMNS)}
FROM "{{schema}}"."group"
LEFT JOIN "{{schema}}".training ON training.id = "group".training_id""",
)
