"""What evaluation tasks share with training tasks, counted by hand."""

from dataclasses import replace

import pytest

from producer.agents.dbbench.data.tasks import task_of
from producer.task import Task
from producer.tasks.overlap import Overlap, content_of, goal_of, instruction_of, overlaps
from schemas.entry import Column, EntryContent, TableInfo


def tap(name: str, description: str, expected: str = "True") -> Task:
    return Task(name, name, description, None, None, 5, "wifi_enabled", expected)


def entry(name: str, table: str, sql: str, instruction: str = "How many?") -> Task:
    info = TableInfo(name=table, columns=(Column(name="id", type="INT"),), rows=((1,),))
    content = EntryContent(
        kind="dbbench", entry_id=name, instruction=instruction, table_info=info, sql=sql
    )
    return task_of(content)


def question(name: str, instruction: str, sql: str) -> Task:
    content = EntryContent(
        kind="text_to_sql", entry_id=name, instruction=instruction, database="shop", sql=sql
    )
    return replace(tap(name, f"CREATE TABLE {name}"), validation_query=None, entry=content)


def compared(train: list[Task], evaluation: list[Task]) -> dict[str, Overlap]:
    return {overlap.of: overlap for overlap in overlaps(train, evaluation)}


def counts(found: Overlap) -> tuple[int, int, int, int, int]:
    return (
        *(found.num_train, found.num_eval, found.num_shared),
        *(found.num_eval_tasks, found.num_seen),
    )


def test_phone_tasks_are_compared_by_what_they_ask_and_by_the_state_that_solves_them() -> None:
    train = [tap("a", "Turn Wi-Fi on."), tap("b", "Switch Wi-Fi on."), tap("c", "Off.", "False")]
    found = compared(train, [tap("x", "turn  wi-fi ON"), tap("y", "Connect.", "3")])
    assert {*found} == {"task", "instruction", "goal", "target"}
    assert counts(found["task"]) == (3, 2, 0, 2, 0)
    assert counts(found["instruction"]) == (3, 2, 1, 2, 1)
    # Two of the training tasks have one goal.
    assert counts(found["goal"]) == (2, 2, 1, 2, 1)
    (example,) = found["goal"].examples
    assert (example.eval_task, example.train_task) == ("x", "a")
    assert example.shared == "wifi_enabled true"
    # One device query, whatever its answer should be.
    assert counts(found["target"]) == (1, 1, 1, 2, 2)


def test_a_task_under_another_name_is_the_same_task_and_with_another_setup_it_is_not() -> None:
    task = tap("a", "Turn Wi-Fi on.")
    assert content_of(task) == content_of(replace(task, task_id="b", name="b", split="eval"))
    assert content_of(task) != content_of(replace(task, setup=("settings put global wifi_on 0",)))
    one, other = (entry(name, "cars", "SELECT COUNT(*) FROM cars") for name in "ab")
    assert content_of(one) == content_of(other)
    assert instruction_of(one) == "how many"


def test_golds_are_compared_without_values_and_without_the_table_of_db_bench() -> None:
    train = [entry("a", "cars", "SELECT id FROM cars WHERE id > 3"), entry("b", "cars", "broken (")]
    held_out = [
        entry("x", "orders", "select id from orders where id > 71"),
        entry("y", "orders", "SELECT id FROM orders"),
    ]
    found = compared(train, held_out)
    assert counts(found["gold"]) == (2, 2, 1, 2, 1)
    assert [example.eval_task for example in found["gold"].examples] == ["x"]
    # Of `orders` and `id`, which both have, the first is new.
    assert counts(found["names"]) == (2, 2, 1, 2, 0)


def test_questions_are_compared_by_their_golds_names_too() -> None:
    train = [question("a", "How many items?", "SELECT COUNT(*) FROM item WHERE price > 3")]
    held_out = [
        question("x", "How many items!", "SELECT COUNT(*) FROM item"),
        question("y", "How many brands?", "SELECT COUNT(*) FROM brand WHERE price > 9"),
    ]
    found = compared(train, held_out)
    assert counts(found["instruction"]) == (1, 2, 1, 2, 1)
    assert counts(found["gold"]) == (1, 2, 0, 2, 0)
    assert counts(found["names"]) == (2, 3, 2, 2, 1)


@pytest.mark.parametrize("evaluation", [[], [tap("x", "Turn Wi-Fi on.")]])
def test_nothing_is_shared_with_no_training_tasks(evaluation: list[Task]) -> None:
    assert all(overlap.num_shared == overlap.num_seen == 0 for overlap in overlaps([], evaluation))


def test_targets_of_entries_are_tables_and_combine_with_the_skills_of_their_golds() -> None:
    def skilled(name: str, table: str, *skills: str) -> Task:
        task = entry(name, table, f"SELECT COUNT(*) FROM {table}")
        assert task.entry is not None
        return replace(task, entry=task.entry.model_copy(update={"skills": skills}))

    train = [skilled("a", "cars", "insert"), skilled("b", "cars", "select", "where")]
    found = compared(train, [skilled("x", "CARS", "insert"), skilled("y", "cars", "where")])
    assert counts(found["target"]) == (1, 1, 1, 2, 2)
    assert counts(found["combination"]) == (2, 2, 1, 2, 1)
    assert found["combination"].examples[0].shared == "cars: insert"
    asked = compared(train, [question("z", "How many?", "SELECT 1")])
    assert counts(asked["target"]) == (1, 1, 0, 1, 0)
    assert "combination" not in asked


def test_joined_queries_are_one_goal_in_any_order() -> None:
    task = tap("a", "Do both.")
    first, second = (
        goal_of(replace(task, validation_query=query, expected_result=expected))
        for query, expected in [
            ("wifi_enabled & current_app", "True & com.android.chrome"),
            ("current_app&wifi_enabled", "com.android.chrome & TRUE"),
        ]
    )
    assert first == second
    assert (first.query, first.expected) == (
        "current_app & wifi_enabled",
        "com.android.chrome & true",
    )
