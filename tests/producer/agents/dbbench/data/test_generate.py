"""Generated entries: balanced, solved by their golds and by nothing less, the same for a seed."""

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from producer.agents.dbbench.data.drafts import DRAFTS
from producer.agents.dbbench.data.generate import (
    MAX_ANSWER_ROWS,
    Finding,
    generate,
    unsound,
    with_gold,
)
from producer.agents.dbbench.data.scene import THEMES, Draft, Scene, Theme, fill
from producer.agents.dbbench.data.skills import SKILLS, single_skill_groups, skills_of, target_skill
from producer.agents.dbbench.data.splits import (
    has_form_of_its_split,
    of_split,
    split_of,
    split_of_table,
)
from producer.sql_data.gold_form import gold_form
from schemas.entry import Column, EntryContent, TableInfo


@pytest.fixture(scope="module")
def entries() -> list[EntryContent]:
    return list(generate(66, seed=3))


def test_every_skill_has_its_share(entries: list[EntryContent]) -> None:
    for index, entry in enumerate(entries):
        assert SKILLS[index % 22] in entry.skills
        assert entry.skills == skills_of(str(entry.sql))


def test_every_entry_is_solved_by_its_gold_and_by_nothing_less(entries: list[EntryContent]) -> None:
    assert list(unsound(entries)) == []


def test_tables_have_20_to_50_rows_and_answers_are_short(entries: list[EntryContent]) -> None:
    for entry in entries:
        assert entry.table_info is not None
        assert 20 <= len(entry.table_info.rows) <= 50
        assert len(entry.answer_direct or ()) <= MAX_ANSWER_ROWS
        assert (entry.answer_direct is None) is not (entry.answer_md5 is None)


def test_the_same_seed_gives_the_same_entries_and_another_one_others(
    entries: list[EntryContent],
) -> None:
    assert list(generate(5, seed=3)) == entries[:5]
    assert list(generate(5, seed=4)) != entries[:5]


def test_only_the_given_skills_are_generated() -> None:
    made = list(generate(4, 0, ("insert", "limit_only")))
    assert [("insert" in entry.skills, "limit_only" in entry.skills) for entry in made] == [
        (True, False),
        (False, True),
    ] * 2


def test_an_order_never_has_ties(entries: list[EntryContent]) -> None:
    """Its last key is unique in the table, so that every database gives the same rows."""
    for entry in entries:
        table, sql = entry.table_info, str(entry.sql)
        if "ORDER BY" not in sql or table is None:
            continue
        key = sql.partition("ORDER BY")[2].split(",")[-1].split()[0]
        index = [column.name for column in table.columns].index(key)
        assert len({row[index] for row in table.rows}) == len(table.rows)


@pytest.mark.parametrize(
    "sql", ["SELECT a FROM t WHERE a > 5", "DELETE FROM t WHERE a > 5", "UPDATE t SET a = a"]
)
def test_a_statement_that_decides_nothing_is_no_entry(sql: str) -> None:
    table = TableInfo(name="t", columns=(Column(name="a", type="INT"),), rows=((1,), (2,)))
    assert with_gold("0", Draft(sql, "Do it."), table) is None


def test_an_unsound_entry_is_found() -> None:
    (good,) = generate(1, 0)
    changed = good.model_copy(update={"answer_direct": ((-1,),)})
    empty = good.model_copy(update={"answer_direct": (), "sql": f"{good.sql} HAVING 1 = 0"})
    refused = good.model_copy(update={"sql": "SELECT nothing"})
    assert [finding.reason.partition(":")[0] for finding in unsound([changed, empty, refused])] == [
        "its SQL gives other rows",
        "an empty answer solves it",
        "its SQL is refused",
    ]
    assert list(unsound([changed])) == [Finding("0", "its SQL gives other rows")]


def test_held_out_tables_are_never_trained_on(entries: list[EntryContent]) -> None:
    names = [
        {entry.table_info.name for entry in of_split(entries, split) if entry.table_info}
        for split in ("train", "held_out")
    ]
    assert names[0]
    assert names[1]
    assert not names[0] & names[1]
    assert of_split(entries, None) == entries


def forms(entries: Iterable[EntryContent]) -> set[str]:
    return {
        gold_form(str(entry.sql), "mysql", entry.table_info.name)
        for entry in entries
        if entry.table_info
    }


def test_no_held_out_gold_or_instruction_is_trained_on_up_to_values_and_the_table_s_name(
    entries: list[EntryContent],
) -> None:
    themes = [theme for theme in THEMES if split_of_table(theme.table) == "held_out"]
    held_out = [*of_split(entries, "held_out"), *generate(66, seed=8, themes=themes)]
    train = [*of_split(entries, "train"), *of_split(generate(110, seed=9), "train")]
    assert not forms(train) & forms(held_out)
    assert not {item.instruction for item in train} & {item.instruction for item in held_out}


def test_no_draft_that_a_table_of_one_split_takes_has_the_form_of_one_of_the_other() -> None:
    """Whatever the seed: forms are drawn here without their rows and golds."""
    taken: dict[str, set[str]] = {"train": set(), "held_out": set()}
    for theme in THEMES:
        random = Random(0)
        scene = Scene(theme, fill(theme, random, 30), random)
        for draft in (make(scene) for make in DRAFTS.values() for _ in range(12)):
            if has_form_of_its_split(draft.sql, theme.table):
                form = gold_form(draft.sql, "mysql", theme.table)
                taken[split_of_table(theme.table)].add(form)
    assert len(taken["held_out"]) > 300
    assert not taken["train"] & taken["held_out"]


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.table)
def test_every_table_is_asked_for_every_skill(theme: Theme) -> None:
    """A table without a gold of its split for a skill would be drawn for ever."""
    entries = list(generate(22, 1, themes=[theme]))
    assert {entry.table_info.name for entry in entries if entry.table_info} == {theme.table}
    assert list(unsound(entries)) == []


def test_some_tables_of_the_closed_list_are_held_out() -> None:
    def entry(name: str) -> EntryContent:
        table = TableInfo(name=name, columns=(), rows=())
        return EntryContent(kind="dbbench", entry_id="0", instruction="", table_info=table)

    counts = Counter(split_of(entry(theme.table)) for theme in THEMES)
    assert 4 <= counts["held_out"] <= 8


@pytest.mark.parametrize(
    ("skills", "target"),
    [
        (("select",), "select"),
        (("insert", "select"), None),
        (("select", "where_single_condition"), "where_single_condition"),
        (("delete", "where_nested_conditions"), "where_nested_conditions"),
        (("limit_only", "order_by_single_column", "select"), "limit_only"),
        (("order_by_single_column", "select", "where_single_condition"), "order_by_single_column"),
        (
            (
                "group_by_single_column",
                "having_aggregate_calculation",
                "having_single_condition_with_aggregate",
                "select",
            ),
            "having_aggregate_calculation",
        ),
        (("column_alias", "select", "table_alias"), None),
        ((), None),
    ],
)
def test_a_target_is_what_an_entry_is_about(skills: tuple[str, ...], target: str | None) -> None:
    entry = EntryContent(kind="dbbench", entry_id="0", instruction="", skills=skills)
    assert target_skill(entry) == target


def test_single_skill_means_exactly_one_and_targets_count_what_they_need(
    entries: list[EntryContent],
) -> None:
    exactly = single_skill_groups(entries)
    assert {skill for skill, group in exactly.items() if group} <= {
        "select",
        "insert",
        "delete",
        "update",
    }
    assert all(entry.skills == (skill,) for skill, group in exactly.items() for entry in group)
    targets = single_skill_groups(entries, by_target=True)
    for index, entry in enumerate(entries):
        if SKILLS[index % 22] not in {"delete", "update"}:
            assert entry in targets[SKILLS[index % 22]]
