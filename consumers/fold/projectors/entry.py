"""Entries of data sets: content-addressed rows that any training or evaluation may state."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Operation, Row, UnappliableError, Upsert
from schemas.base import Payload
from schemas.entry import EntryStated, entry_hash
from schemas.ids import entry_row_id


class EntryProjector:
    """EntryStated."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, EntryStated)  # noqa: S101  # the registry names the class
        content, table = payload.content, payload.content.table_info
        if entry_hash(content) != payload.content_hash:
            message = f"the content of entry {content.entry_id[:80]!r} does not have its hash"
            raise UnappliableError(message)
        check_id(
            f"entry {content.entry_id[:80]!r}",
            payload.id,
            entry_row_id(payload.task_id, payload.content_hash),
        )
        row: Row = {
            "id": payload.id,
            "task_id": payload.task_id,
            "content_hash": payload.content_hash,
            "kind": content.kind,
            "entry_id": content.entry_id,
            "instruction": content.instruction,
            "table_name": None if table is None else table.name,
            "columns_json": None if table is None else table.columns,
            "rows_json": None if table is None else table.rows,
            "database": content.database,
            "database_sha256": content.database_sha256,
            "evidence": content.evidence,
            "answer_direct_json": content.answer_direct,
            "answer_md5": content.answer_md5,
            "sql": content.sql,
            "skills": content.skills,
            "difficulty": content.difficulty,
            "created_at": context.time,
            "updated_at": context.time,
        }
        return [Upsert("entry", row)]
