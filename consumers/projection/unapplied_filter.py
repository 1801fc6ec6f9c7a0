"""Which records an operator means: by state, training, kind and type."""

from typing import NamedTuple, Self

from consumers.database.connection import Cursor
from consumers.errors import NotFoundError
from schemas.ids import training_id

_OF_TRAINING = """
SELECT stream FROM {schema}.unapplied_record WHERE stream IN (
    SELECT 'training/' || %(training)s
    UNION ALL SELECT 'rollout/' || id FROM {schema}.rollout WHERE training_id = %(training)s
    UNION ALL SELECT 'environment/' || id FROM {schema}.environment WHERE training_id = %(training)s
    UNION ALL SELECT 'evaluation/' || id FROM {schema}.eval WHERE training_id = %(training)s
    UNION ALL SELECT 'evaluation/' || id FROM {schema}.baseline WHERE training_id = %(training)s)
UNION SELECT stream FROM {schema}.unapplied_record
    WHERE position(%(named)s IN value) > 0
"""
"""By the rows of a stream's owner, or by a record of the stream that is not applied."""


class UnappliedFilter(NamedTuple):
    """Conditions that a record meets which is not applied; None: any."""

    state: str | None = None
    training: str | None = None
    """Its name."""
    kind: str | None = None
    type: str | None = None
    """Glob, with or without `cua.`."""
    streams: tuple[str, ...] = ()
    """Of the training; `resolved` looks them up."""

    @property
    def is_everything(self) -> bool:
        """Whether every record meets it."""
        return self == UnappliedFilter()

    def resolved(self, cursor: Cursor, schema: str) -> Self:
        """With the streams of its training. Reads every record that is not applied once.

        NotFoundError for a training without a row and without such a record.
        """
        if self.training is None:
            return self
        query = _OF_TRAINING.format(schema=f'"{schema}"')
        cursor.execute(query, _names(self.training))
        streams = tuple(row[0] for row in cursor.fetchall())
        if not streams and not _exists(cursor, schema, self.training):
            message = (
                f"there is no training {self.training!r}; `cua-project status --all` lists the"
                " trainings"
            )
            raise NotFoundError(message)
        return self._replace(streams=streams)

    def condition(self) -> tuple[str, dict[str, object]]:
        """SQL about the columns of `unapplied_record`, and its parameters."""
        parts, values = ["true"], dict[str, object]()
        if self.state is not None:
            parts.append("state = %(state)s")
            values["state"] = self.state
        if self.kind is not None:
            parts.append("kind = %(kind)s")
            values["kind"] = self.kind
        if self.type is not None:
            parts.append("(type LIKE %(type)s OR type LIKE 'cua.' || %(type)s)")
            values["type"] = _like(self.type)
        if self.training is not None:
            named = "stream LIKE 'record/%%' AND position(%(named)s IN value) > 0"
            parts.append(f"(stream = ANY(%(streams)s) OR {named})")
            values |= _names(self.training) | {"streams": list(self.streams)}
        return " AND ".join(parts), values


def _exists(cursor: Cursor, schema: str, training: str) -> bool:
    cursor.execute(
        f'SELECT FROM "{schema}".training WHERE id = %(training)s',
        {"training": str(training_id(training))},
    )
    return cursor.fetchone() is not None


def _names(training: str) -> dict[str, object]:
    """How rows and records name a training."""
    id_ = str(training_id(training))
    return {"training": id_, "named": f'"trainingid":"{id_}"'.encode()}


def _like(glob: str) -> str:
    """A glob as LIKE's pattern."""
    for special in "\\%_":
        glob = glob.replace(special, "\\" + special)
    return glob.replace("*", "%").replace("?", "_")
