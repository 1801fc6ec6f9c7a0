"""The cursor file of `tail --cursor`: the next run continues exactly where this one stopped."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from consumers.errors import MismatchError, UsageError
from consumers.log.reader import TopicPartition
from schemas.home import describe_growth


class Cursor:
    """Positions by topic and partition, with the id of their log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved: dict[TopicPartition, int] = {}

    def load(self, log_id: str) -> dict[TopicPartition, int] | None:
        """Next offset to print per partition; None when the file does not exist yet.

        UsageError when it is unreadable or not a cursor; MismatchError when it is another log's.
        """
        if not self._path.parent.is_dir():
            message = f"the folder of --cursor {self._path} does not exist; create it first"
            raise UsageError(message)
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
        except OSError as error:
            message = f"cannot read --cursor {self._path}: {error.strerror}"
            raise UsageError(message) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{self._path} is not a cursor of `tail`; name another file, or delete it"
            raise UsageError(message) from None
        if (problem := describe_growth(saved_id, log_id)) is not None:
            raise MismatchError(problem)
        if saved_id != log_id:
            message = (
                f"the cursor {self._path} belongs to the log {saved_id}, and this is"
                f" {log_id or 'a log that does not exist yet'}; name another file"
            )
            raise MismatchError(message)
        return positions

    def save(self, log_id: str, positions: Mapping[TopicPartition, int]) -> None:
        """Replace the file atomically. UsageError when it cannot be written."""
        if positions == self._saved:
            return
        topics: dict[str, dict[str, int]] = {}
        for tp, offset in sorted(positions.items()):
            topics.setdefault(tp.topic, {})[str(tp.partition)] = offset
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            with temporary.open("w") as file:
                json.dump({"log_id": log_id, "positions": topics}, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            message = f"cannot write --cursor {self._path}: {error.strerror}; name another file"
            raise UsageError(message) from None
        self._saved = dict(positions)
