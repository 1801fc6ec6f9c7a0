"""What of a completion is SQL, and what of SQL is code."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.process_rewards.sql_text import COMMENTED, find_sql, skeleton


def sql_of(completion: str) -> str | None:
    span = find_sql(completion)
    return None if span is None else completion[span.start : span.end]


@pytest.mark.parametrize(
    ("completion", "sql"),
    [
        ("SELECT 1", "SELECT 1"),
        ("\n  select 1;\n", "select 1;"),
        ("-- first\nWITH a AS (SELECT 1) SELECT * FROM a", None),
        ("/* why */ SELECT 1", None),
        ("(SELECT 1) UNION SELECT 2", "(SELECT 1) UNION SELECT 2"),
        ("VALUES (1)", "VALUES (1)"),
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("```SQL\r\nSELECT 1\r\n```", "SELECT 1"),
        ("```sqlite\nSELECT 1\n```", "SELECT 1"),
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("```sql SELECT 1```", "SELECT 1"),
        ("Thus:\n```sql\nSELECT 1", "SELECT 1"),
        ("```sql\nSELECT 1\n```\nor better\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT 1\n```\n```python\nprint(2)\n```", "SELECT 1"),
        ("```mysql\nSELECT 1\n```\nThe result is:\n```\n3\n```", "SELECT 1"),
        ("```postgresql\nDELETE FROM t\n```\nDone:\n```\n3\n```", "DELETE FROM t"),
        ("```text\nSELECT 1\n```\nThe result is:\n```\n3\n```", "SELECT 1"),
        ("```text\nSELECT 1\n```\nor\n```\nSELECT 2\n```", "SELECT 2"),
        ("~~~sql\nSELECT 1\n~~~", "SELECT 1"),
        ("~~~sql\nSELECT '~~~'\n~~~~\nThe result is:\n~~~\n3\n~~~", "SELECT '~~~'"),
        ("~~~sql\nSELECT '```'\n~~~", "SELECT '```'"),
        ("````sql\nSELECT 1\n````\n```text\n3\n```", "SELECT 1"),
        ("````sql\nSELECT '```'\n````", "SELECT '```'"),
        ('```sql title="x"\nSELECT 1\n```', "SELECT 1"),
        ("```sql {.numberLines}\nSELECT 1\n```", "SELECT 1"),
        ("```sql linenos=true hl=1\nDELETE FROM t\n```", "DELETE FROM t"),
        ("```{sql}\nSELECT 1\n```\n```\n3\n```", "SELECT 1"),
        ("```{.sql .numberLines}\nSELECT 1\n```", "SELECT 1"),
        ("```{sql, connection=db}\nSELECT 1\n```", "SELECT 1"),
        ("```SQL:query.sql\nSELECT 1\n```", "SELECT 1"),
        ("```sql,ignore\r\nSELECT 1\r\n```\r\n```json\r\n[3]\r\n```", "SELECT 1"),
        ("```T-SQL\nSELECT 1\n```", "SELECT 1"),
        ("```pl/sql\nDELETE FROM t\n```\n```\n3\n```", "DELETE FROM t"),
        ("```sql SELECT a\nFROM t\n```", "SELECT a\nFROM t"),
        ("```sql-- all\nSELECT 1\n```", "-- all\nSELECT 1"),
        ("```sql\nSELECT 1\n```\n```json\n[3]\n```\n```text\n3\n```\n```\n3\n```", "SELECT 1"),
        ("```markdown\nSo:\n```sql\nSELECT 1\n```\n```\nThat is it.", "SELECT 1"),
        ("````md\n```sql\nSELECT 1\n```\n````", "SELECT 1"),
        ("```sql\nSELECT 0\nNo, rather:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("~~~\n```sql\nSELECT 1\n```\n~~~", "SELECT 1"),
        ("SELECT 1\n~~~\n3\n~~~", "SELECT 1"),
        ("SELECT 1\n```", "SELECT 1"),
        ("SELECT '```' FROM t", "SELECT '```' FROM t"),
        ("SELECT '```sql x' FROM t", "SELECT '```sql x' FROM t"),
        ("With the shop table I count rows: ```sql\nSELECT 1\n```", "SELECT 1"),
        ("With the shop table I count rows:\n```\nSELECT 1\n```", "SELECT 1"),
        ("With this:\n```\n3\n```\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("Select the count.\n1. ```sql\nSELECT 9\n```", "SELECT 9"),
        ("WITH 'a' AS (SELECT 1) SELECT 1", None),
        ('WITH "a""b" AS (SELECT 1) SELECT 1', None),
        ('WITH RECURSIVE "a b" (x) AS (SELECT 1) SELECT x FROM "a b"', None),
        ("```sql\nDROP TABLE t\n```", "DROP TABLE t"),
    ],
)
def test_the_sql_is_a_text_that_is_a_query_or_the_last_block(
    completion: str, sql: str | None
) -> None:
    assert sql_of(completion) == (completion if sql is None else sql)


@pytest.mark.parametrize(
    "completion",
    [
        *(
            "",
            " \n ",
            "I do not know.",
            "SELECTION 1",
            "```sql\n\n```",
            "```python\n1\n```",
            "DROP x",
        ),
        *('```bash\nsqlite3 db "SELECT 1"\n```', "~~~text\n3\n~~~", "It costs ~~~3~~~ or so."),
    ],
)
def test_no_query_and_no_block_is_no_sql(completion: str) -> None:
    assert find_sql(completion) is None


def test_a_skeleton_hides_what_is_no_code_at_the_top() -> None:
    sql = "a 'it''s (' -- ( \n\"b)\" (c (d) 'e)') /* ( */ f"
    expected = f"a 'xxxxxxx' {COMMENTED * 5}\n\"xx\" ({' ' * 10}) {COMMENTED * 7} f"
    assert skeleton(sql) == (expected, 2)


def test_a_quote_that_is_not_closed_hides_the_rest() -> None:
    assert skeleton("a 'b\n\n(c").text == "a 'xxxxc"
    assert skeleton("a (b 'c)").text == "a (     "


@given(st.text(alphabet="a'\"`[]()-/*\n \\é𝄞\0", max_size=60))
def test_a_skeleton_is_as_long_as_its_sql(sql: str) -> None:
    assert len(skeleton(sql).text) == len(sql)


HOSTILE = [
    "'",
    "(",
    ")",
    "-- \n",
    "\n\n",
    "/*",
    "```",
    "WITH ",
    "[`\"'",
    "```sql\n",
    "``` ",
    "`",
    "~~~\n",
    "```sql {",
    "```sql a=",
    "```{sql ",
    " ",
    "SELECT 1\n\n",
    "''",
]


@pytest.mark.parametrize("part", HOSTILE)
@pytest.mark.parametrize("head", ["", "SELECT ", "```sql"])
def test_a_hundred_kilobytes_take_less_than_a_second(head: str, part: str) -> None:
    completion = head + part * (100_000 // len(part))
    started = time.process_time()
    find_sql(completion)
    skeleton(completion)
    assert time.process_time() - started < 1
