"""What every emitter has to say: trainings that a seed decides, as payloads in order.

Whoever continues an emitter knows them all, and so does the check at the end.
"""

from typing import NamedTuple

from schemas.base import Payload
from schemas.wire import read_envelope, read_payload
from tests.reference_fold.histories import history
from tests.reference_fold.writers import Shape

SHAPE = Shape(steps=3, groups=4, group_size=4, turns=4)
"""Some 1,200 events of 740 bytes on 150 streams."""


class Planned(NamedTuple):
    """One event that will have to stand in the log once."""

    subject: str
    payload: Payload


def training(seed: int, emitter: int, number: int) -> list[Planned]:
    """The events of an emitter's training, in the order in which they happen."""
    name = f"chaos-{seed}-{emitter}-{number}"
    said = history(name, (seed * 100 + emitter) * 10_000 + number, SHAPE)
    return [Planned(item.subject, read_payload(read_envelope(item.value))) for item in said]


def by_stream(planned: list[Planned]) -> dict[str, list[Payload]]:
    """Each stream's payloads, in order."""
    streams: dict[str, list[Payload]] = {}
    for item in planned:
        streams.setdefault(item.subject, []).append(item.payload)
    return streams
