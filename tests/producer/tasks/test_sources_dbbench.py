"""The task source `dbbench`: entries of a folder as tasks."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.data.layout import write_entries
from producer.errors import UsageError
from producer.tasks.sources import load_tasks
from schemas.entry import Column, EntryContent, TableInfo


def entry(name: str, table: str, *skills: str) -> EntryContent:
    return EntryContent(
        kind="dbbench",
        entry_id=name,
        instruction="How many?",
        table_info=TableInfo(name=table, columns=(Column(name="id", type="INT"),), rows=((1,),)),
        answer_direct=((1,),),
        sql=f"SELECT COUNT(*) FROM {table}",
        skills=("select", *skills),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # sha256 of `orders` begins with a multiple of four, that of `cars` does not.
    write_entries(
        [entry("0", "cars"), entry("1", "orders"), entry("2", "cars", "limit_only")], tmp_path
    )
    return tmp_path


def names(folder: Path, **fields: JsonValue) -> list[str]:
    source: JsonValue = {"source_type": "dbbench", "path": str(folder), **fields}
    return [task.task_id for task in load_tasks(source)]


def test_a_task_says_what_the_table_is_called_and_is_judged_by_its_environment(
    folder: Path,
) -> None:
    task = load_tasks({"source_type": "dbbench", "path": str(folder)})[0]
    assert task.description == (
        "How many?\nThe name of this table is cars, and the headers of this table are id."
    )
    assert (task.validation_type, task.max_steps, task.tags) == ("environment", 3, ("select",))
    assert task.entry == entry("0", "cars")


def test_entries_are_chosen_by_split_skills_and_limit(folder: Path) -> None:
    assert names(folder) == ["0", "1", "2"]
    assert {*names(folder, split="train"), *names(folder, split="held_out")} == {"0", "1", "2"}
    assert names(folder, skills=["limit_only"]) == ["2"]
    assert names(folder, skills=["limit_only", "select"], limit=1) == names(folder, limit=1)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"skills": ["selekt"]}, "'selekt' is no skill. Did you mean 'select'?"),
        ({"skills": ["insert"]}, "no entry of"),
        ({"split": "dev"}, 'split: unknown value "dev". Use one of train, held_out'),
        ({"path": None}, "tasks.path: required"),
        ({"judge": "agent"}, "judge: unknown field"),
    ],
)
def test_mistakes_are_named(folder: Path, fields: dict[str, JsonValue], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_tasks({"source_type": "dbbench", "path": str(folder), **fields})
    assert reason in str(raised.value)


def test_a_folder_that_is_missing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        names(tmp_path / "none")


def test_fields_of_this_source_are_refused_by_others() -> None:
    several: tuple[dict[str, JsonValue], ...] = (
        {"path": "x"},
        {"split": "train"},
        {"skills": ["insert"]},
    )
    for fields in several:
        with pytest.raises(UsageError, match=next(iter(fields))):
            load_tasks({"source_type": "demo_all", **fields})


def test_generated_entries_are_made_once_in_a_process_and_each_caller_has_its_own_list() -> None:
    """A run loads its tasks twice; a thousand take ten seconds."""
    source: dict[str, JsonValue] = {
        "source_type": "dbbench_generated",
        "num_samples": 22,
        "seed": 4,
    }
    first = load_tasks({**source, "skills": ["insert"]})
    again = load_tasks({**source, "skills": ["insert"]})
    assert all(one is other for one, other in zip(first, again, strict=True))
    first.clear()
    assert len(load_tasks({**source, "skills": ["insert"]})) == len(again) == 22
    others = load_tasks({**source, "skills": ["insert"], "seed": 5})
    assert [other.description for other in others] != [item.description for item in again]


def test_a_name_that_no_index_takes_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """It passed the check and the run, and its whole training was parked by the projector."""
    write_entries([entry("字" * 334, "cars")], tmp_path)
    with pytest.raises(UsageError, match=r"its name must have at most 1000 bytes.* has 1002 bytes"):
        names(tmp_path)
