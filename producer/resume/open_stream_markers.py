"""Markers of streams that only their own process would end: warm-ups and evaluations by hand.

After a SIGKILL the next process of the same home finds the marker, sees that its lock is free, and
ends the stream. A training needs no marker: the same command continues it.

    <home>/open/<id>.open   subject, lower bounds and which folder this is, as JSON
    <home>/open/<id>.lock   held by the owner while it lives

The copy of a home has another lock, which is not the owner's.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from producer.durable import write_durably
from producer.emit import Emitter
from producer.errors import LogBrokenError
from producer.log.writer import TopicPartition
from producer.resume.active_writer import file_identity
from producer.resume.resume_state import bounds_from_json, bounds_to_json
from schemas.catalogue import stream_owner

logger = logging.getLogger(__name__)

SUFFIX = ".open"


@dataclass(frozen=True, slots=True)
class OpenStreamMarker:
    """A stream whose owner died before it ended the stream."""

    subject: str
    since: Mapping[TopicPartition, int]
    """Offsets at or before every record of the stream and of its rollouts."""
    path: Path
    is_copied: bool = False
    """Its lock is another one than the owner held, who may live."""

    def remove(self) -> None:
        """The stream is ended."""
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def mark_open(folder: Path, subject: str, emitter: Emitter) -> Iterator[None]:
    """Inside, the stream is marked as ours.

    Enter before its first event and leave after its last. When the log breaks the marker stays, so
    that the next process ends the stream.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stream_owner(subject)}{SUFFIX}"
    since = bounds_to_json(emitter.log.lower_bounds())
    content = {
        "subject": subject,
        "log_id": emitter.log.log_id(),
        "since": since,
        "folder": file_identity(folder),
    }
    marker = OpenStreamMarker(subject, {}, path)
    with FileLock(path.with_suffix(".lock")):
        write_durably(path, json.dumps(content))
        try:
            yield
        except LogBrokenError:
            raise
        except Exception:
            marker.remove()
            raise
        emitter.flush()
        marker.remove()


def markers_of_dead_processes(folder: Path, log_id: str) -> Iterator[OpenStreamMarker]:
    """Each marker whose lock is free, locked by us while the caller ends its stream.

    Its owner is dead unless the marker is copied. The caller removes it afterwards.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        lock = FileLock(path.with_suffix(".lock"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        except OSError as error:
            # Another user's: that user's next process ends the stream.
            logger.warning("leaving %s to its owner: %s", path, error.strerror)
            continue
        try:
            if not path.exists():
                # Removed by its owner between our listing and our lock.
                path.with_suffix(".lock").unlink(missing_ok=True)
                continue
            marker = _read(path, log_id)
            if marker is not None:
                yield marker
        finally:
            lock.release()


def _read(path: Path, log_id: str) -> OpenStreamMarker | None:
    """The marker; None, with a warning, for a file that is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        subject = content["subject"]
        stream_owner(subject)
        # Offsets of another log mean nothing in this one.
        since = bounds_from_json(content["since"]) if content["log_id"] == log_id else {}
        here = file_identity(path.parent)
        # Older versions did not name their folder.
        is_copied = content.get("folder", here) != here
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("ignoring %s, which is no marker of an open stream (%s)", path, error)
        return None
    return OpenStreamMarker(subject, since, path, is_copied)
