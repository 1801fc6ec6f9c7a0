"""Statements of one task in every order give one row; one without its definition is parked."""

from datetime import timedelta
from itertools import permutations
from uuid import UUID, uuid5

import pytest

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
from tests.support.postgres import one

pytestmark = pytest.mark.services
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


def stated(training: str, second: int, *, with_definition: bool = True) -> LoggedEvent:
    owner = uuid5(NAMESPACE, training)
    payload = TaskStated.model_validate(
        STATED
        | {
            "id": task_row_id("wifi", DIGEST),
            "definition_hash": DIGEST,
            "validation_type": None,
            "definition": DEFINITION if with_definition else None,
        }
    )
    subject = f"training/{owner}"
    value = encode(
        payload,
        id=uuid7(EPOCH_START),
        source="//a/1/x",
        time=EPOCH_START + timedelta(seconds=second),
        subject=subject,
        training_id=UUID(str(owner)),
        epoch=1,
        sequence=1,
    )
    return LoggedEvent(subject, value)


@pytest.mark.parametrize("batch_records", [1, 100])
def test_every_order_and_batching_gives_the_row_of_the_reference_fold(
    migrated_url: str, batch_records: int
) -> None:
    statements = [stated(name, second) for second, name in enumerate("abc")]
    found = []
    for order in permutations(statements):
        empty(migrated_url)
        log = memory_log(list(order))
        ProjectionLoop(MemoryReader(log), migrated_url, batch_records=batch_records).run_once()
        tables = database_tables(migrated_url)
        reference = fold((item.subject, item.value) for item in order)
        assert differences(plain_tables(reference.tables), tables) == []
        assert verify(MemoryReader(log), migrated_url).equal
        (row,) = tables["task"].values()
        found.append(row)
    assert all(row == found[0] for row in found)


def test_a_task_without_its_definition_is_parked(migrated_url: str) -> None:
    log = memory_log([stated("a", 0, with_definition=False)])
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    assert one(migrated_url, "SELECT count(*) FROM cua.task") == 0
    parked = one(migrated_url, "SELECT kind, reason FROM cua.unapplied_record")
    assert parked == (
        "invalid",
        "the task 'wifi' is stated without its definition, so that its hash cannot be checked",
    )
