"""Marks of streams that only their own process would end, in a folder that the home's processes share.

A training needs none: the same command continues it. A mark is a file that its owner holds locked while it lives, so that after a SIGKILL
the next process knows which streams were left open.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from producer.emit import Emitter
from producer.errors import LogBrokenError
from producer.log.writer import TopicPartition
from producer.resume.resume_state import bounds_from_json, bounds_to_json
from schemas.catalogue import stream_owner

SUFFIX = ".open"


@dataclass(frozen=True, slots=True)
class OpenStreamMarker:
    """A stream whose owner died before it ended it."""

    subject: str
    since: Mapping[TopicPartition, int]
    """Nothing of the stream, and of what came of it, lies before."""
    path: Path


@contextmanager
def mark_open(folder: Path, subject: str, emitter: Emitter) -> Iterator[None]:
    """While inside, the stream is known to be ours.

    To be entered before anything is said on it, and left after its end was said.
    """
    folder.mkdir(parents=True, exist_ok=True)
    owner = stream_owner(subject)
    path, hidden = folder / f"{owner}{SUFFIX}", folder / f".{owner}"
    content = {
        "subject": subject,
        "log_id": emitter.log.log_id,
        "since": bounds_to_json(emitter.lower_bounds()),
    }
    with hidden.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(content))
        file.flush()
        hidden.rename(path)
        try:
            yield
        except LogBrokenError:
            raise  # the end could not be said; the next process will
        except Exception:
            path.unlink()
            raise
        emitter.flush()
        path.unlink()


def markers_of_dead_processes(folder: Path, log_id: str) -> Iterator[OpenStreamMarker]:
    """Each mark whose owner lives no more, ours alone while it is being looked at.

    The caller removes its file once its stream is ended.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink == 0:
                continue  # its owner removed it between our opening and our lock
            content = json.load(file)
            # Offsets of another log say nothing about this one.
            since = bounds_from_json(content["since"]) if content["log_id"] == log_id else {}
            yield OpenStreamMarker(content["subject"], since, path)
