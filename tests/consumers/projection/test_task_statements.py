"""Statements of one task in every order give one row: the proven one, else the smallest hash's."""

from itertools import permutations
from uuid import UUID, uuid5

import pytest

from consumers.database.migrate import migrate
from consumers.errors import MismatchError
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.verify import verify
from schemas.ids import EPOCH_START, NAMESPACE, content_hash, task_row_id, uuid7
from schemas.task import TaskStated
from schemas.wire import encode
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent
from tests.reference_fold.reference import fold
from tests.reference_fold.test_one_hash import empty
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryReader

STATED: dict[str, object] = {
    "task_id": "wifi",
    "name": "Wi-Fi",
    "description": "Turn it on",
    "difficulty": None,
    "category": None,
    "max_steps": 5,
    "validation_query": None,
    "expected_result": None,
    "tags": [],
    "app_name": None,
    "source_type": "custom",
}
DEFINITION = STATED | {"setup": ["svc wifi disable"], "split": "train", "validation_config": {}}
DIGEST = content_hash(DEFINITION)


def stated(training: str, *, description: str | None = None) -> LoggedEvent:
    """With the definition, or as an older writer who describes it otherwise."""
    owner = uuid5(NAMESPACE, training)
    content = STATED if description is None else STATED | {"description": description}
    payload = TaskStated.model_validate(
        content
        | {
            "id": task_row_id("wifi", DIGEST),
            "definition_hash": DIGEST,
            "validation_type": None,
            "definition": DEFINITION if description is None else None,
        }
    )
    subject = f"training/{owner}"
    value = encode(
        payload,
        id=uuid7(EPOCH_START),
        source="//a/1/x",
        time=EPOCH_START,
        subject=subject,
        training_id=UUID(str(owner)),
        epoch=1,
        sequence=1,
    )
    return LoggedEvent(subject, value)


PROVEN = stated("proven")
OLDER = [stated(name, description=f"Turn it on, {name} says") for name in ("a", "b", "c")]


@pytest.mark.services
@pytest.mark.parametrize("batch_records", [1, 100])
@pytest.mark.parametrize("statements", [OLDER, [*OLDER[:2], PROVEN]])
def test_every_order_and_batching_gives_the_row_of_the_reference_fold(
    migrated_url: str, statements: list[LoggedEvent], batch_records: int
) -> None:
    found = set()
    for order in permutations(statements):
        empty(migrated_url)
        log = memory_log(list(order))
        ProjectionLoop(MemoryReader(log), migrated_url, batch_records=batch_records).run_once()
        tables = database_tables(migrated_url)
        reference = fold((item.subject, item.value) for item in order)
        assert differences(plain_tables(reference.tables), tables) == []
        assert verify(MemoryReader(log), migrated_url).equal
        (row,) = tables["task"].values()
        found.add((row["description"], row.get("unproven_hash")))
    ((description, unproven_hash),) = found
    is_proven = PROVEN in statements
    assert (unproven_hash is None) == is_proven
    assert (description == "Turn it on") == is_proven


@pytest.mark.services
def test_a_column_that_a_downgrade_dropped_asks_for_a_rebuild_before_it_is_believed(
    migrated_url: str,
) -> None:
    log = memory_log(OLDER[:1])
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    migrate(migrated_url, "0005")
    migrate(migrated_url)
    with pytest.raises(MismatchError, match="cua-project rebuild"):
        ProjectionLoop(MemoryReader(log), migrated_url).run_once()
