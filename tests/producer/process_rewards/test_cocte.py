"""CoCTE: a completion's steps, and what makes it one."""

import sqlite3
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.process_rewards.cocte import (
    NotCocteError,
    join_steps,
    read_cocte,
    render_cocte,
    split_steps,
)

GOLD = """WITH cheap AS (SELECT id FROM book WHERE price < 9),

lent AS (SELECT book_id FROM loan WHERE book_id IN (SELECT id FROM cheap))

SELECT count(*) FROM lent"""
HOSTILE = """-- the cheap ones

WITH "the cheap" AS (SELECT id FROM book -- ) not the end

  WHERE title <> '

),' AND note <> ')'), -- done

/* a paragraph

   of a comment ( */

[größer](a, b) AS NOT MATERIALIZED (
  WITH deep AS (SELECT id FROM "the cheap")

  SELECT id, id FROM deep
)

SELECT a FROM größer;

-- the end"""


def texts(completion: str) -> list[str]:
    return [step.text for step in split_steps(completion)]


def test_steps_are_the_ctes_and_the_query() -> None:
    assert texts(GOLD) == GOLD.split("\n\n")
    cocte = read_cocte(GOLD)
    assert cocte.names == ("cheap", "lent")
    assert cocte.sql == GOLD
    assert [step.text for step in cocte.steps] == GOLD.split("\n\n")


def test_a_step_s_place_is_that_in_the_completion() -> None:
    completion = f"I think:\n```sql\n{GOLD}\n```\nDone."
    steps = read_cocte(completion).steps
    assert [completion[step.start : step.end] for step in steps] == GOLD.split("\n\n")


def test_blank_lines_in_strings_names_comments_and_parentheses_end_no_step() -> None:
    cocte = read_cocte(HOSTILE)
    assert cocte.names == ("the cheap", "größer")
    assert [step.text[:12] for step in cocte.steps] == [
        "-- the cheap",
        "/* a paragra",
        "SELECT a FRO",
    ]
    assert cocte.steps[-1].text.endswith("-- the end")


def test_a_recursive_cte_is_a_step() -> None:
    cocte = read_cocte(
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 5)\r\n"
        "\r\nSELECT max(x) FROM n"
    )
    assert cocte.names == ("n",)
    assert sqlite3.connect(":memory:").execute(cocte.sql).fetchall() == [(5,)]


def test_any_completion_has_steps() -> None:
    assert texts("SELECT 1") == ["SELECT 1"]
    assert texts("SELECT 1\n\nFROM t\n \t\n\nWHERE x") == ["SELECT 1", "FROM t", "WHERE x"]
    assert texts("WITH a AS (SELECT 1\n\nSELECT 2") == ["WITH a AS (SELECT 1\n\nSELECT 2"]
    assert texts("no idea") == []


@pytest.mark.parametrize(
    ("completion", "message"),
    [
        ("no idea", "found none"),
        ("SELECT 1", "found one step"),
        (GOLD.replace("\n\n", "\n"), "found one step"),
        (GOLD.replace("WITH ", ""), "found none"),
        (GOLD.replace("lent AS", "WITH lent AS"), "step 2: WITH"),
        (GOLD.replace("9),", "9)"), "step 1: expected a comma"),
        (GOLD.replace("cheap))", "cheap)),"), "step 2: expected a comma"),
        (GOLD.replace("lent", "CHEAP"), "two CTEs are named CHEAP"),
        (GOLD.replace("IN (SELECT id FROM cheap)", "> 2"), "reads the CTE cheap"),
        (GOLD.replace("FROM lent", "FROM loan"), "reads the CTE lent"),
        (GOLD.replace("FROM lent", "FROM main.lent"), "reads the CTE lent"),
        (GOLD.replace("SELECT count(*)", "SELECT count(* "), "a query of SQLite"),
        (GOLD.replace("SELECT count(*) FROM lent", "DELETE FROM lent"), "another kind"),
        (GOLD + "; SELECT 1", "found 2 statements"),
        (GOLD.replace("),\n\nlent", "), b AS (SELECT 1),\n\nlent"), "step 1: expected `name"),
        (GOLD + "\n\nSELECT 1", "step 2: expected a comma"),
        (GOLD.replace("\n\nSELECT count(*) FROM lent", ""), "comma"),
        ("WITH a AS (SELECT x FROM a)\n\nSELECT 1", "reads the CTE a"),
        (
            "WITH a AS (SELECT 1)\n\nSELECT * FROM (WITH a AS (SELECT 2) SELECT * FROM a)",
            "reads the CTE a",
        ),
        ("WITH a AS (SELECT 1)\n\nSELECT * FROM a WHERE " + "NOT " * 4000 + "1", "recursion"),
        ("WITH a AS (SELECT 1)\n\nSELECT " + "(" * 99 + "1" + ")" * 99 + " FROM a", "nested"),
        ("WITH a AS (SELECT 1)\n\nSELECT '" + "x" * 100_000 + "' FROM a", "20,000 characters"),
    ],
)
def test_another_form_is_refused_with_what_is_missing(completion: str, message: str) -> None:
    with pytest.raises(NotCocteError, match=message.replace("(", r"\(").replace("*", r"\*")):
        read_cocte(completion)


def test_a_cte_may_be_read_where_another_of_its_name_is_out_of_reach() -> None:
    completion = (
        "WITH a AS (SELECT 1),\n\n"
        "b AS (SELECT * FROM a JOIN (WITH a AS (SELECT 2) SELECT * FROM a))\n\nSELECT * FROM B"
    )
    assert read_cocte(completion).names == ("a", "b")


def test_rendered_steps_are_read_back() -> None:
    ctes = [("a", "SELECT 1 AS x"), ("b", "SELECT x FROM a")]
    completion = render_cocte(ctes, "SELECT x FROM b")
    assert completion == "WITH a AS (SELECT 1 AS x),\n\nb AS (SELECT x FROM a)\n\nSELECT x FROM b"
    assert read_cocte(completion).names == ("a", "b")
    assert join_steps(texts(completion)) == completion
    assert render_cocte([], "SELECT 1") == "SELECT 1"


SQL = st.text(alphabet="a(),;'\"`[]-/*\n \r\té", max_size=80)


@given(SQL)
def test_steps_are_in_order_and_lose_nothing_but_blank_space(rest: str) -> None:
    completion = "SELECT " + rest
    steps = split_steps(completion)
    assert all(completion[step.start : step.end] == step.text for step in steps)
    assert all(before.end <= after.start for before, after in pairwise(steps))
    assert "".join("".join(texts(completion)).split()) == "".join(completion.split())


@given(SQL)
def test_reading_raises_nothing_else(rest: str) -> None:
    completion = "WITH a AS (SELECT 1)\n\nSELECT " + rest
    try:
        cocte = read_cocte(completion)
    except NotCocteError:
        return
    assert len(cocte.steps) == len(cocte.names) + 1


@pytest.mark.parametrize("part", ["SELECT 1\n\n", "a AS (SELECT 1),\n\n", "-- \n\n", "x\n\n\n\n"])
def test_a_hundred_kilobytes_of_steps_take_less_than_a_second(part: str) -> None:
    completion = "WITH b AS (SELECT 1),\n\n" + part * (100_000 // len(part))
    started = time.process_time()
    split_steps(completion)
    with pytest.raises(NotCocteError):
        read_cocte(completion)
    assert time.process_time() - started < 2
