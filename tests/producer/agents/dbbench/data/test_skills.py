"""Labels by syntax tree, worked out by hand."""

import pytest

from producer.agents.dbbench.data.skills import SKILLS, GoldUnreadableError, skills_of

CASES = [
    ("SELECT a, b FROM t", "select"),
    ("INSERT INTO t (a) VALUES (1), (2)", "insert"),
    ("DELETE FROM t", "delete"),
    ("UPDATE t SET a = 1", "update"),
    ("SELECT a FROM t WHERE b = 1", "select where_single_condition"),
    ("SELECT a FROM t WHERE NOT (b = 1)", "select where_single_condition"),
    ("SELECT a FROM t WHERE b BETWEEN 1 AND 2", "select where_single_condition"),
    ("DELETE FROM t WHERE a IN (1, 2)", "delete where_single_condition"),
    ("UPDATE t SET a = 1 WHERE a = 2 AND b = 3", "update where_multiple_conditions"),
    ("SELECT a FROM t WHERE a = 1 OR b = 2 OR c = 3", "select where_multiple_conditions"),
    ("SELECT a FROM t WHERE (a = 1 AND b = 2)", "select where_multiple_conditions"),
    ("SELECT a FROM t WHERE (a = 1 OR b = 2) AND c = 3", "select where_nested_conditions"),
    ("SELECT a FROM t WHERE a = 1 AND b = 2 OR c = 3", "select where_nested_conditions"),
    ("SELECT a FROM t WHERE a = 1 AND NOT (b = 2 OR c = 3)", "select where_nested_conditions"),
    ("SELECT a FROM t ORDER BY a DESC", "select order_by_single_column"),
    ("SELECT a FROM t ORDER BY a DESC, b DESC", "select order_by_multiple_columns_same_direction"),
    ("SELECT a FROM t ORDER BY a, b DESC", "select order_by_multiple_columns_different_directions"),
    ("SELECT a FROM t LIMIT 3", "select limit_only"),
    ("SELECT a FROM t LIMIT 3 OFFSET 2", "select limit_and_offset"),
    ("SELECT a FROM t LIMIT 2, 3", "select limit_and_offset"),
    ("SELECT a AS x FROM t", "select column_alias"),
    ("SELECT x.a FROM t AS x", "select table_alias"),
    ("SELECT x.a FROM t x", "select table_alias"),
    ("SELECT a, COUNT(*) FROM t GROUP BY a", "select group_by_single_column"),
    ("SELECT a, b, SUM(c) FROM t GROUP BY a, b", "select group_by_multiple_columns"),
    (
        "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 2",
        "select group_by_single_column having_single_condition_with_aggregate",
    ),
    (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING n > 2",
        "select column_alias group_by_single_column having_single_condition_with_aggregate",
    ),
    ("SELECT a FROM t GROUP BY a HAVING a > 2", "select group_by_single_column"),
    (
        "SELECT a FROM t GROUP BY a HAVING SUM(b) > 2 AND SUM(b) < 9",
        "select group_by_single_column having_multiple_conditions_with_aggregate",
    ),
    (
        "SELECT a FROM t GROUP BY a HAVING MAX(b) - MIN(b) > 2",
        "select group_by_single_column having_aggregate_calculation"
        " having_single_condition_with_aggregate",
    ),
    (
        "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 2 + 1",
        "select group_by_single_column having_single_condition_with_aggregate",
    ),
    (
        "SELECT a FROM t WHERE b > (SELECT AVG(b) FROM t)",
        "select subquery_single where_single_condition",
    ),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t)",
        "select subquery_single where_single_condition",
    ),
    (
        "SELECT a FROM t WHERE b IN (SELECT b FROM t WHERE c = 1)",
        "select subquery_single where_single_condition",
    ),
    (
        "SELECT a FROM t WHERE b > (SELECT MIN(b) FROM t) AND b < (SELECT MAX(b) FROM t)",
        "select subquery_multiple where_multiple_conditions",
    ),
    (
        "SELECT a FROM t WHERE b > (SELECT AVG(b) FROM t WHERE c = (SELECT MAX(c) FROM t))",
        "select subquery_nested where_single_condition",
    ),
    (
        "DELETE FROM t WHERE b = (SELECT m FROM (SELECT MAX(b) AS m FROM t) AS d)",
        "delete select subquery_nested table_alias where_single_condition",
    ),
    ("(SELECT a FROM t) UNION (SELECT b FROM t) ORDER BY 1", "select order_by_single_column"),
    ("WITH c AS (SELECT a FROM t) SELECT a FROM c", "select"),
    (
        "INSERT INTO t SELECT a FROM t ORDER BY a LIMIT 3",
        "insert select limit_only order_by_single_column",
    ),
    ("UPDATE t SET a = 1 ORDER BY b LIMIT 2", "update limit_only order_by_single_column"),
    ('select `a` from `t` where `b` = "x";', "select where_single_condition"),
]
"""SQL -> the skills that it needs."""


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=[sql for sql, _ in CASES])
def test_skills_are_those_that_a_reader_would_name(sql: str, expected: str) -> None:
    assert skills_of(sql) == tuple(sorted(expected.split()))


def test_there_are_22_and_each_is_found_in_some_case() -> None:
    assert len(set(SKILLS)) == 22
    assert {skill for _, expected in CASES for skill in expected.split()} == set(SKILLS)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT",
        "SELECT 1; SELECT 2",
        "SELECT (((",
        "not sql at all",
        "SELECT DATE_ADD(, 1 DAY)",
    ],
)
def test_what_cannot_be_read_is_refused(sql: str) -> None:
    with pytest.raises(GoldUnreadableError):
        skills_of(sql)
