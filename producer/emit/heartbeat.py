"""Emits heartbeats and checks that the training is still ours, on a separate thread.

Keeps a long update from looking like a dead process, and stops a process that was replaced.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from producer.emit.ownership import ClaimLostError, OwnershipMonitor
from producer.emit.stream import StreamWriter
from producer.errors import CuaTrainError, LogBrokenError, MismatchError, StopRequestedError
from schemas.training import HeartbeatSent

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
"""Interval between heartbeats: a sixth of the 60 s after which another host may take over."""


@contextmanager
def heartbeat(
    stream: StreamWriter,
    monitor: OwnershipMonitor | None = None,
    on_lost: Callable[[ClaimLostError], None] = lambda _error: None,
    every_s: float = HEARTBEAT_S,
) -> Iterator[None]:
    """Emit heartbeats while the block runs.

    Without `monitor`, no other process can own this training. `on_lost` is called once, on the
    heartbeat's thread, when another writer owns it. A broken log ends the heartbeat, and the main
    thread reports it; a log that cannot be reached or read does not end it.
    """
    over = threading.Event()
    said: set[str] = set()

    def beat() -> None:
        while not over.wait(every_s):
            try:
                if monitor is not None:
                    monitor.check()
                stream.emit(HeartbeatSent())
            except ClaimLostError as error:
                on_lost(error)
                return
            except LogBrokenError:
                return
            except (CuaTrainError, StopRequestedError) as error:
                # A process asked to stop may still work for a while, because an update is not
                # interrupted.
                if isinstance(error, MismatchError) and str(error) not in said:
                    said.add(str(error))
                    logger.warning("cannot tell whether this training is still ours: %s", error)
                stream.emit(HeartbeatSent())

    stream.emit(HeartbeatSent())
    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
