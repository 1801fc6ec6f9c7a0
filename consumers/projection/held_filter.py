"""Which held records an operator means: by how they are held, training, kind, reason and type."""

from typing import NamedTuple

from schemas.ids import training_id

_OF_TRAINING = """(
    stream IN (
        SELECT 'training/' || %(training)s
        UNION ALL SELECT 'rollout/' || id FROM {schema}.rollout WHERE training_id = %(training)s
        UNION ALL SELECT 'environment/' || id FROM {schema}.environment
            WHERE training_id = %(training)s
        UNION ALL SELECT 'evaluation/' || id FROM {schema}.eval WHERE training_id = %(training)s
        UNION ALL SELECT 'evaluation/' || id FROM {schema}.baseline WHERE training_id = %(training)s
        UNION ALL SELECT stream FROM {schema}.held_record WHERE position(%(named)s IN value) > 0
    ) OR position(%(named)s IN value) > 0)
"""
"""By the rows of a stream's owner, or by what a held record of the stream says."""


class HeldFilter(NamedTuple):
    """Conditions that a held record meets; None: any."""

    held_as: str | None = None
    training: str | None = None
    """Its name."""
    kind: str | None = None
    reason: str | None = None
    """Text within it."""
    type: str | None = None
    """Glob, with or without `cua.`."""

    @property
    def is_everything(self) -> bool:
        """Whether every held record meets it."""
        return self == HeldFilter()

    def condition(self, schema: str) -> tuple[str, dict[str, object]]:
        """SQL about the columns of `held_record`, and its parameters."""
        parts, values = ["true"], dict[str, object]()
        if self.held_as is not None:
            parts.append("held_as = %(held_as)s")
            values["held_as"] = self.held_as
        if self.kind is not None:
            parts.append("kind = %(kind)s")
            values["kind"] = self.kind
        if self.reason is not None:
            parts.append("position(lower(%(reason)s) IN lower(reason)) > 0")
            values["reason"] = self.reason
        if self.type is not None:
            parts.append("(type LIKE %(type)s OR type LIKE 'cua.' || %(type)s)")
            values["type"] = _like(self.type)
        if self.training is not None:
            parts.append(_OF_TRAINING.format(schema=f'"{schema}"'))
            named = str(training_id(self.training))
            values |= {"training": named, "named": f'"trainingid":"{named}"'.encode()}
        return " AND ".join(parts), values


def _like(glob: str) -> str:
    """A glob as LIKE's pattern."""
    for special in "\\%_":
        glob = glob.replace(special, "\\" + special)
    return glob.replace("*", "%").replace("?", "_")
