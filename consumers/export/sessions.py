"""Sessions with a database in LifelongAgentBench's layout: `runs.json`, a list of its `Session`s.

Its `ChatHistory`, `SampleStatus` and `SessionEvaluationOutcome` have the names that our events use.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from consumers.export.rollouts import EndedRollout
from consumers.export.rows import Row, rollout_row
from consumers.export.synced_file import synced_file, write_synced
from consumers.export.trainings import Trainings
from schemas.session import SessionEnded

FILE = "runs.json"
TASK_NAME = "db_bench"
README = """# Sessions of agents with a database

`runs.json` is a list of sessions in LifelongAgentBench's layout, in the order in which they ended:
`sample_index` is the entry's name in its data set (its row id where the log does not state the
entry), `sample_status` how the session ended, `evaluation_record.outcome` what it came to,
`task_output.answer` the final answer or, of an entry that is judged by it, the hash of the table's
state.
"""


def write_sessions(
    folder: Path, ended: Iterable[EndedRollout], facts: Trainings
) -> tuple[int, int]:
    """Write the file and its README.md; numbers of sessions and their turns. OSError.

    A rollout that is no session, or that ended without the session's end, is passed over.
    """
    write_synced(folder / "README.md", README)
    num_sessions = num_turns = 0
    with synced_file(folder / FILE) as file:
        file.write(b"[")
        for rollout in ended:
            if rollout.session is None:
                continue
            fields = session_fields(rollout, rollout.session, rollout_row(rollout, facts))
            file.write((b",\n" if num_sessions else b"\n") + to_json(fields))
            num_sessions += 1
            num_turns += len(rollout.turns)
        file.write(b"\n]\n")
    return num_sessions, num_turns


def session_fields(rollout: EndedRollout, session: SessionEnded, row: Row) -> dict[str, Any]:
    """One session as that system stores it."""
    history: list[dict[str, str]] = []
    for turn in rollout.turns:
        history.append({"role": "user", "content": turn.text or ""})
        history.append({"role": "agent", "content": turn.model_response})
    answer = session.answer if session.table_hash is None else session.table_hash
    return {
        "task_name": TASK_NAME,
        "sample_index": row.get("entry") or row["task_id"] or str(session.entry_id),
        "sample_status": session.session_status,
        "chat_history": {"value": history},
        "finish_reason": session.error_message,
        "task_output": {"answer": answer},
        "evaluation_record": {"outcome": session.outcome, "detail_dict": None},
    }
