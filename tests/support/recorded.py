"""What a loop recorded, read back from its local log: events, and what the fold makes of them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from PIL import Image

from consumers.fold.fold import Fold, FoldedBatch
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream
from schemas.base import Payload
from schemas.catalogue import entity_of
from schemas.event import Envelope
from schemas.installation import Installation, read_installation
from schemas.wire import read_envelope, read_payload
from tests.support.reading import read_all

PayloadT = TypeVar("PayloadT", bound=Payload)


class Recorded(NamedTuple):
    """One event."""

    envelope: Envelope
    payload: Payload


def installation() -> Installation:
    """The one of this test's CUA_HOME."""
    return read_installation(os.environ)


def recorded(at: Installation | None = None) -> list[Recorded]:
    """Every event of the log, in its order."""
    envelopes = [read_envelope(record.value) for record in read_all(at or installation())]
    return [Recorded(envelope, read_payload(envelope)) for envelope in envelopes]


def of_type(kind: type[PayloadT], at: Installation | None = None) -> list[PayloadT]:
    """The payloads of one type."""
    return [one.payload for one in recorded(at) if isinstance(one.payload, kind)]


def types(at: Installation | None = None) -> list[str]:
    """`step.created` …, without heartbeats."""
    found = [one.envelope.type.removeprefix("cua.") for one in recorded(at)]
    return [name for name in found if name != "training.heartbeat_sent"]


class Folded(NamedTuple):
    batch: FoldedBatch
    streams: dict[str, Stream]


def folded(at: Installation | None = None) -> Folded:
    """The whole log as the projector folds it, without a database."""
    streams: dict[str, Stream] = {}
    fold = Fold(streams, log_id="log")
    batch = fold.take_all([parse_record(record) for record in read_all(at or installation())])
    return Folded(batch, streams)


def problems(found: Folded) -> list[str]:
    """Streams that are parked or wait, and records that are not applied."""
    unapplied = [f"{one.record.key}: {one.reason}" for one in found.batch.unapplied.values()]
    stuck = [
        subject
        for subject, stream in found.streams.items()
        if stream.waiting or stream.parked_since is not None
    ]
    return [*unapplied, *stuck]


def statuses(at: Installation | None = None) -> dict[str, list[str]]:
    """Table -> the last status of each of its entities, sorted."""
    last: dict[tuple[str, UUID], str] = {}
    for envelope, payload in recorded(at):
        entity = entity_of(envelope.subject, payload)
        if entity is not None and payload.STATUS is not None:
            last[entity] = payload.STATUS
    by_table: dict[str, list[str]] = {}
    for (table, _), status in last.items():
        by_table.setdefault(table, []).append(status)
    return {table: sorted(values) for table, values in by_table.items()}


def png(colour: int = 0) -> bytes:
    """Four by three pixels."""
    file = BytesIO()
    Image.new("RGB", (4, 3), (colour, 0, 0)).save(file, "PNG")
    return file.getvalue()


def start_small(**given: Any) -> Any:
    """A training of three steps, two rollouts a group, four turns."""
    from producer import record

    settings: dict[str, Any] = {
        "num_steps": 3,
        "name": "mine",
        "policy": "org/policy",
        "group_size": 2,
        "max_turns": 4,
        **given,
    }
    return record.open(**settings)


@contextmanager
def one_step(**given: Any) -> Iterator[Any]:
    """The only step of a training, with a loss."""
    with start_small(**{"num_steps": 1, **given}) as training, training.step() as step:
        step.metrics(loss=0)
        yield step


@contextmanager
def one_rollout(task: Any = "a", **given: Any) -> Iterator[Any]:
    """The only rollout of a step; `given`: of the rollout."""
    with (
        one_step() as step,
        step.group(task, num_rollouts=1) as group,
        group.rollout(**given) as rollout,
    ):
        yield rollout
