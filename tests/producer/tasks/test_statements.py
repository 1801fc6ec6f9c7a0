"""The events of a task are addressed by content."""

from dataclasses import fields, replace

from producer.agents.android.demo_tasks import demo_tasks
from producer.task import Task
from producer.tasks.statements import definition_hash, task_facts
from schemas.entry import EntryContent
from schemas.ids import task_row_id

TASK = demo_tasks()[1]
CHANGES: dict[str, object] = {
    "task_id": "other",
    "name": "other",
    "description": "other",
    "difficulty": "hard",
    "category": "other",
    "max_steps": 99,
    "validation_query": "dnd_enabled",
    "expected_result": "False",
    "setup": (),
    "tags": ("other",),
    "app_name": "other",
    "source_type": "other",
    "split": "eval",
    "validation_config": {"a": "b"},
    "entry": EntryContent(kind="dbbench", entry_id="1", instruction="Count."),
}


def test_the_same_task_states_the_same_facts() -> None:
    assert task_facts(TASK) == task_facts(replace(TASK))
    stated, validator = task_facts(TASK)
    assert stated.id == task_row_id("train_02_enable_wifi", stated.definition_hash)
    assert validator is not None
    assert (validator.task_id, validator.validation_query, validator.validation_method) == (
        stated.id,
        "wifi_enabled",
        "equals",
    )
    assert validator.config["setup"] == ["settings put global wifi_on 0"]


def test_any_changed_field_makes_another_definition_and_another_validator() -> None:
    judges = {"judge", "judge_model"}
    assert set(CHANGES) | judges == {field.name for field in fields(Task)}
    changed = [replace(TASK, **{name: value}) for name, value in CHANGES.items()]  # type: ignore[arg-type]  # one field at a time
    # Of judges only an endpoint has a model.
    changed += [replace(TASK, judge="https://h/v1", judge_model=name) for name in (None, "m", "n")]
    number = len(CHANGES) + 3 + 1
    assert len({definition_hash(task) for task in [TASK, *changed]}) == number
    facts = [task_facts(task) for task in [TASK, *changed]]
    assert len({stated.id for stated, _ in facts}) == number
    assert len({validator.id for _, validator in facts if validator is not None}) == number


def test_a_task_that_cannot_be_judged_has_no_validator() -> None:
    task = next(task for task in demo_tasks() if not task.is_judged)
    stated, validator = task_facts(task)
    assert validator is None
    assert stated.validation_type is None
