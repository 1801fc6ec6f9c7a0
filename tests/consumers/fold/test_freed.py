"""A folded batch is freed with its last reference.

Projectors collect garbage rarely (`reduce_gc_frequency`), so a batch in a cycle of references would
stay: 40 MB more for every 25,000 records.
"""

import gc
from collections.abc import Iterator

import pytest

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.fold.rows import Rows
from consumers.fold.stream import Stream
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogRecord
from schemas.event import Envelope
from tests.reference_fold.histories import Shape
from tests.reference_fold.writers import BEGAN
from tests.support.logs import logged_events


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def num_alive() -> int:
    return sum(
        type(get_object) in {Fold, Rows, Stream, Unapplied, Envelope}
        for get_object in gc.get_objects()
    )


@pytest.mark.usefixtures("without_collector")
def test_a_batch_is_freed_without_the_garbage_collector() -> None:
    before = num_alive()
    events = logged_events("a", shape=Shape(steps=1, tells_everything=True))
    # One is missing, so that records wait too.
    parsed = [
        parse_record(LogRecord("t", 0, offset, event.subject, event.value, BEGAN))
        for offset, event in enumerate(events)
        if offset != len(events) // 2
    ]
    streams: dict[str, Stream] = {}
    fold = Fold(streams, log_id="log", find_owned=lambda _, __: {})
    fold.take_all(parsed)
    assert fold.batch.num_events
    assert fold.batch.unapplied
    assert num_alive() > before + len(events)
    del fold, streams, parsed
    assert num_alive() == before
