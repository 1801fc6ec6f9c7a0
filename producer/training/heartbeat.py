"""Says every few seconds that the training is alive, from a thread of its own, so that a long update is not taken for a death."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from producer.emit import Emitter
from producer.errors import LogBrokenError
from schemas.catalogue import stream
from schemas.event import Fact
from schemas.training import HeartbeatSent

HEARTBEAT_S = 10.0
"""A sixth of the 60 s after which another host may take over."""


@contextmanager
def heartbeat(emitter: Emitter, training_id: UUID, every_s: float = HEARTBEAT_S) -> Iterator[None]:
    """Beat while the block runs; a broken log ends the beating and is the main thread's to report."""
    over = threading.Event()
    fact = Fact(stream("training", training_id), HeartbeatSent(), training_id)

    def beat() -> None:
        while not over.wait(every_s):
            try:
                emitter.emit(fact)
            except LogBrokenError:
                return

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    emitter.emit(fact)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
