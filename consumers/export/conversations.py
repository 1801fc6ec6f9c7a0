"""The dataset as conversations: one JSON line per rollout, in items of the OpenAI Responses API."""

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic_core import to_json

from consumers.export.messages import Exchange, to_items
from consumers.export.rollouts import EndedRollout
from consumers.export.rows import Row

FILE = "conversations.jsonl"
README = """# Rollouts of computer-use agents

`conversations.jsonl` has one object per rollout: the columns of `rollouts` (task, outcome, reward)
and `items`, its turns as input items of the OpenAI Responses API (`input_text`, `input_image`,
`output_text`). The conversation is the whole episode; a policy with a limited context saw the
instruction and the most recent turns of it.
"""


class Conversations:
    """The file. Not thread-safe; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.num_rollouts = self.num_turns = 0
        (folder / "README.md").write_text(README, encoding="utf-8")
        self._file = (folder / FILE).open("wb")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file; synced unless it failed. OSError."""
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    def add(self, rollout: EndedRollout, row: Row, image: Callable[[str], bytes | None]) -> None:
        """The next rollout. `image`: a reference's bytes; None names the reference instead."""
        exchanges = [
            Exchange(turn.text, _url(turn.screenshot_before, image), turn.model_response)
            for turn in rollout.turns
        ]
        self._file.write(to_json({**row, "items": to_items(exchanges)}, inf_nan_mode="null"))
        self._file.write(b"\n")
        self.num_rollouts += 1
        self.num_turns += len(exchanges)


def _url(ref: str | None, image: Callable[[str], bytes | None]) -> str | None:
    if ref is None:
        return None
    content = image(ref)
    return ref if content is None else f"data:image/png;base64,{b64encode(content).decode()}"
