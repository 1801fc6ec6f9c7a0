"""Every bound of a column is the producer's bound, in one place, for all fields."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import BaseModel
from sqlalchemy import BigInteger, Text, UniqueConstraint

from consumers.tables import ROW_TABLES
from schemas.base import Payload
from schemas.bounds import (
    BIG_COLUMN_LIMIT,
    OutOfBoundsError,
    check_key_texts,
    check_numbers,
    key_paths,
    number_paths,
)
from schemas.catalogue import BY_TYPE
from schemas.ids import task_row_id
from schemas.skills import SkillsMeasured, SkillSuccess
from schemas.task import TaskStated

PAYLOADS: tuple[type[Payload], ...] = tuple(dict.fromkeys(BY_TYPE.values()))
OF_FIXED_TEXTS = {
    "content_hash": "sha256 that the fold computes again",
    "entity_type": "name of a table",
    "obs_type": "one of four",
    "stream": "the envelope's subject, which `wire` limits",
}
"""Columns of indexes whose text is ours, never a user's."""


def stated(task_id: str = "one", max_steps: int = 1) -> TaskStated:
    return TaskStated(
        id=task_row_id(task_id, "0"),
        task_id=task_id,
        definition_hash="0",
        name="one",
        description="one",
        difficulty=None,
        category=None,
        max_steps=max_steps,
        validation_type=None,
        validation_query=None,
        expected_result=None,
        source_type="custom",
    )


def indexed_texts() -> Iterator[tuple[str, str]]:
    """(table, column) of every text in an index or a unique constraint."""
    for row in ROW_TABLES:
        table = row.__table__
        groups = [list(index.columns) for index in table.indexes]  # type: ignore[attr-defined]
        groups += [
            list(constraint.columns)
            for constraint in table.constraints  # type: ignore[attr-defined]
            if isinstance(constraint, UniqueConstraint)
        ]
        for column in {column.name: column for group in groups for column in group}.values():
            if isinstance(column.type, Text):
                yield row.__tablename__, column.name


def test_every_text_in_an_index_comes_from_fields_with_the_bound_of_keys() -> None:
    marked = {path[-1] for payload in PAYLOADS for path in key_paths(payload)}
    indexed = {column for _, column in indexed_texts()}
    assert indexed - OF_FIXED_TEXTS.keys() == marked
    assert marked == {"task_id", "definition_hash", "rollout_id", "run_name", "skill", "scorer"}


def test_a_field_named_as_one_of_a_key_has_the_bound_in_every_payload() -> None:
    """Unless it is an id, a UUID."""
    marked = {path[-1] for payload in PAYLOADS for path in key_paths(payload)}
    for payload in PAYLOADS:
        paths = set(key_paths(payload))
        for path in text_paths(payload):
            assert path[-1] not in marked or path in paths, (payload, path)


def text_paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        if field.annotation is str:
            yield (name,)


def test_numbers_are_bound_as_the_columns_of_their_tables_are() -> None:
    """64 bits where the column has 64, 32 elsewhere."""
    big = {
        (row.__tablename__, column.name)
        for row in ROW_TABLES
        for column in row.__table__.columns
        if isinstance(column.type, BigInteger)
    }
    marked = {
        (payload.ENTITY, path[-1])
        for payload in PAYLOADS
        for path, limit in number_paths(payload)
        if limit == BIG_COLUMN_LIMIT
    }
    assert marked == big


@pytest.mark.parametrize("task_id", ["a" * 1_001, "字" * 334, "a\0b"])
def test_a_key_of_more_than_1000_bytes_or_with_a_nul_is_refused(task_id: str) -> None:
    with pytest.raises(OutOfBoundsError, match="task_id must have at most 1000 bytes"):
        check_key_texts(stated(task_id))


def test_a_key_of_1000_bytes_and_the_largest_number_are_accepted() -> None:
    check_key_texts(stated("字" * 333 + "a"))
    check_numbers(stated(max_steps=2**31 - 1))
    with pytest.raises(OutOfBoundsError, match="max_steps must be at least -2147483648"):
        check_numbers(stated(max_steps=2**31))


def test_values_inside_a_payload_are_checked_too() -> None:
    one = SkillSuccess(skill="s" * 1_001, num_sessions=2**31, num_correct=0, success_rate=0)
    measured = SkillsMeasured(
        evaluation_id=UUID(int=1),
        generation=0,
        step=0,
        skills=(one,),
        measured_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(OutOfBoundsError, match="skill must"):
        check_key_texts(measured)
    with pytest.raises(OutOfBoundsError, match="num_sessions must"):
        check_numbers(measured)
