"""Sessions with a database in LifelongAgentBench's layout: `runs.json`, a list of its `Session`s.

Its `ChatHistory`, `SampleStatus` and `SessionEvaluationOutcome` have the names that our events use.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic_core import to_json

from consumers.export.rollouts import EndedRollout
from consumers.export.rows import Row
from schemas.session import SessionEnded

FILE = "runs.json"
TASK_NAME = "db_bench"
README = """# Sessions of agents with a database

`runs.json` is a list of sessions in LifelongAgentBench's layout, in the order in which they ended:
`sample_index` is the entry's name in its data set, `sample_status` how the session ended,
`evaluation_record.outcome` what it came to, `task_output.answer` the final answer or, of an entry
that is judged by it, the hash of the table's state.
"""


class Sessions:
    """The file. Not thread-safe; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.num_rollouts = self.num_turns = 0
        (folder / "README.md").write_text(README, encoding="utf-8")
        self._file = (folder / FILE).open("wb")

    def __enter__(self) -> Self:
        """Itself."""
        self._file.write(b"[")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the list and close the file; synced unless it failed. OSError."""
        with self._file:
            if kind is None:
                self._file.write(b"\n]\n")
                self._file.flush()
                os.fsync(self._file.fileno())

    def add(self, rollout: EndedRollout, row: Row) -> None:
        """The next rollout; one that is no session, or has no end of one, is passed over."""
        if rollout.session is None:
            return
        self._file.write(b",\n" if self.num_rollouts else b"\n")
        self._file.write(to_json(session_fields(rollout, rollout.session, row)))
        self.num_rollouts += 1
        self.num_turns += len(rollout.turns)


def session_fields(rollout: EndedRollout, session: SessionEnded, row: Row) -> dict[str, Any]:
    """One session as that system stores it."""
    history: list[dict[str, str]] = []
    for turn in rollout.turns:
        history.append({"role": "user", "content": turn.text or ""})
        history.append({"role": "agent", "content": turn.model_response})
    answer = session.answer if session.table_hash is None else session.table_hash
    return {
        "task_name": TASK_NAME,
        "sample_index": row["entry"] or row["task_id"],
        "sample_status": session.session_status,
        "chat_history": {"value": history},
        "finish_reason": session.error_message,
        "task_output": {"answer": answer},
        "evaluation_record": {"outcome": session.outcome, "detail_dict": None},
    }
