"""A file that remembers how far was shown, so that the next `tail` goes on exactly there."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from consumers.errors import MismatchError, UsageError
from consumers.log.reader import TopicPartition


class Cursor:
    """Positions by topic and partition, with the id of the log they are of.

    `save` replaces the file whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved: dict[TopicPartition, int] = {}

    def load(self, log_id: str) -> dict[TopicPartition, int] | None:
        """Next offset to show per place; None when there is no file yet.

        MismatchError when it is of another log.
        """
        try:
            found = json.loads(self._path.read_text())
            positions = {
                TopicPartition(topic, int(number)): int(at)
                for topic, numbers in found["positions"].items()
                for number, at in numbers.items()
            }
            saved_id = found["log_id"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = (
                f"expected a cursor of `tail` in {self._path}, found something else ({error!r});"
                " name another file or delete it"
            )
            raise UsageError(message) from None
        if saved_id != log_id:
            message = (
                f"the cursor {self._path} is of the log {saved_id}, this is"
                f" {log_id or 'a log that does not exist yet'}; name another file"
            )
            raise MismatchError(message)
        return positions

    def save(self, log_id: str, positions: Mapping[TopicPartition, int]) -> None:
        """Remember these; whoever reads the file sees the old ones or these, never half."""
        if positions == self._saved:
            return
        topics: dict[str, dict[str, int]] = {}
        for place, offset in sorted(positions.items()):
            topics.setdefault(place.topic, {})[str(place.partition)] = offset
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        with temporary.open("w") as file:
            json.dump({"log_id": log_id, "positions": topics}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        self._saved = dict(positions)
