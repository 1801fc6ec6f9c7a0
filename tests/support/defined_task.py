"""Statements of tasks whose ids prove their content, as a trainer writes them."""

from schemas.ids import content_hash, task_row_id
from schemas.task import TaskStated

OF_THE_ID = {"id", "definition_hash", "definition"}


def defined(stated: TaskStated) -> TaskStated:
    """The same, with the definition of what it states, and its hash and id."""
    definition = stated.model_dump(mode="json", exclude=OF_THE_ID)
    digest = content_hash(definition)
    row = task_row_id(stated.task_id, digest)
    return stated.model_copy(
        update={"id": row, "definition_hash": digest, "definition": definition}
    )
