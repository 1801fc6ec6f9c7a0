"""Marks of streams that only their own process can end: left behind by a SIGKILL, they tell the next process what to end in its stead.

A training needs none, for the same command continues it. A mark is a file that its owner holds locked while it lives.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from producer.emit import Emitter
from producer.emit.claim import ClaimLostError, claim
from producer.errors import UnreachableError
from producer.training.state import bounds_from_json, bounds_to_json
from schemas.base import Payload
from schemas.catalogue import entity_of, stream_owner
from schemas.event import Fact
from schemas.status import MACHINES

SUFFIX = ".open"
TIMEOUT_S = 10.0


@contextmanager
def mark(folder: Path, subject: str, emitter: Emitter) -> Iterator[None]:
    """While inside, the stream is known to be ours; to be entered before anything is said on it, and left after its end was said."""
    folder.mkdir(parents=True, exist_ok=True)
    owner = stream_owner(subject)
    path, hidden = folder / f"{owner}{SUFFIX}", folder / f".{owner}"
    content = {"subject": subject, "log_id": emitter.log.log_id, "since": bounds_to_json(emitter.lower_bounds())}
    with hidden.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(content))
        file.flush()
        hidden.rename(path)
        try:
            yield
        finally:
            emitter.flush()
            path.unlink()


def end_abandoned(folder: Path, emitter: Emitter, end: Callable[[], Payload]) -> int:
    """Say `end` on every stream whose owner died before it did; how many. What cannot be ended now stays marked for the next process."""
    num_ended = 0
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink == 0:
                continue  # its owner removed it between our opening and our lock
            with contextlib.suppress(ClaimLostError, UnreachableError):
                num_ended += _end(json.load(file), emitter, end)
                path.unlink()
    return num_ended


def _end(found: dict[str, object], emitter: Emitter, end: Callable[[], Payload]) -> bool:
    subject, since = str(found["subject"]), found["since"]
    bounds = bounds_from_json(since) if isinstance(since, dict) and found["log_id"] == emitter.log.log_id else {}
    emitter.wait_shipped(TIMEOUT_S)
    history = emitter.read_back(subject, bounds, timeout_s=TIMEOUT_S)
    payload = end()
    entity = entity_of(subject, payload)
    status = None if entity is None else history.statuses.get(entity)
    if entity is None or status is None or status in MACHINES[entity[0]].ends:
        return False
    claim(emitter, Fact(subject, payload, _training_id(subject)), history, bounds, timeout_s=TIMEOUT_S)
    emitter.forget_stream(subject)
    return True


def _training_id(subject: str) -> UUID | None:
    return stream_owner(subject) if subject.startswith("training/") else None
