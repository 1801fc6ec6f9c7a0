"""Says every few seconds that the training is alive, and looks whether it is still ours.

From a thread of its own.

A long update is so not taken for a death, and a process that was replaced stops instead of working
for nobody.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, OwnershipMonitor
from producer.errors import LogBrokenError, UnreachableError
from schemas.catalogue import stream
from schemas.event import Fact
from schemas.training import HeartbeatSent

HEARTBEAT_S = 10.0
"""A sixth of the 60 s after which another host may take over."""


@contextmanager
def heartbeat(
    emitter: Emitter,
    training_id: UUID,
    watch: OwnershipMonitor,
    on_lost: Callable[[ClaimLostError], None],
    every_s: float = HEARTBEAT_S,
) -> Iterator[None]:
    """Beat while the block runs; `on_lost` hears, once and from the beating thread, that another writer has the training.

    A broken log ends the beating and is the main thread's to report; a log that is away for a while is looked at again.
    """
    over = threading.Event()
    fact = Fact(stream("training", training_id), HeartbeatSent(), training_id)

    def beat() -> None:
        while not over.wait(every_s):
            try:
                watch.check()
                emitter.emit(fact)
            except ClaimLostError as error:
                on_lost(error)
                return
            except UnreachableError:
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
