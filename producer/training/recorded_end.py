"""The end of a process's work on a training: an event, unless the log broke or it was lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from producer.emit.heartbeat import HEARTBEAT_S, heartbeat
from producer.emit.ownership import ClaimLostError
from producer.errors import LogBrokenError, StopRequestedError, TakenOverError
from producer.resume.open_training import OpenedTraining
from schemas.training import TrainingCancelled, TrainingFailed


@contextmanager
def recorded_end(
    opened: OpenedTraining[Any],
    clock: Callable[[], datetime],
    stop: threading.Event,
    heartbeat_s: float = HEARTBEAT_S,
) -> Iterator[None]:
    """Beat while the block runs, and emit that it was cancelled or failed; completing is its own.

    `stop` is set when another writer owns the training, and what the block then raises becomes
    ClaimLostError: readers would refuse every further event of this process.
    """
    stream = opened.stream
    lost: list[ClaimLostError] = []

    def on_lost(error: ClaimLostError) -> None:
        lost.append(error)
        stop.set()

    with heartbeat(stream, opened.monitor, on_lost, heartbeat_s):
        try:
            yield
        except StopRequestedError:
            if lost:
                raise lost[0] from None
            message = "stopped on request; the same command continues it"
            stream.emit(TrainingCancelled(status_message=message, ended_at=clock()))
            raise
        except (LogBrokenError, TakenOverError):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:2000]
            stream.emit(TrainingFailed(error_message=message, ended_at=clock()))
            raise
