"""How far the process is that makes the default policy: a small file that those who wait read."""

import contextlib
import json
from pathlib import Path
from typing import NamedTuple


class Seen(NamedTuple):
    """Progress of a warm-up."""

    done: int
    """Optimiser steps."""
    total: int
    loss: float | None
    """None: demonstrations are being drawn."""


class MakingProgress:
    """The file. It is only shown: one that cannot be read or written changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, done: int, total: int, loss: float | None) -> None:
        """For those who wait; whole or not at all."""
        temporary = self._path.with_name(f"{self._path.name}.part")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps([done, total, loss]), encoding="utf-8")
            temporary.replace(self._path)

    def read(self) -> Seen | None:
        """What was written last; None where nothing is."""
        try:
            done, total, loss = json.loads(self._path.read_text(encoding="utf-8"))
            return Seen(int(done), int(total), None if loss is None else float(loss))
        except (OSError, ValueError, TypeError):
            return None

    def clear(self) -> None:
        """Nobody makes the policy any more."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
