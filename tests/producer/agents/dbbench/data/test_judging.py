"""An answer is right by its values: how they may be written, and what order means."""

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.data.judging import is_right_answer
from producer.agents.dbbench.data.skills import is_ordered, kind_of

RIGHT: list[tuple[str, list[tuple[JsonValue, ...]]]] = [
    ("[(1, 'a')]", [(1, "a")]),
    ("[[1, 'a']]", [(1, "a")]),
    ("(1, 'a')", [(1, "a")]),
    ("1, a", [(1, "a")]),
    ("1", [(1,)]),
    ("'1'", [(1,)]),
    ("[('1',)]", [(1,)]),
    ("Decimal('3.5')", [(3.5,)]),
    ("[(Decimal('3.5000'), 2)]", [(3.5, 2)]),
    ("[('Smith, John', 2)]", [("Smith, John", 2)]),
    ("Smith, John", [("Smith, John",)]),
    ("Smith, John (Jr.)", [("Smith, John (Jr.)",)]),
    ("[('John (Jr.)',), ('a]b',)]", [("John (Jr.)",), ("a]b",)]),
    ('[("O\'Brien",)]', [("O'Brien",)]),
    ("[('O''Brien',)]", [("O'Brien",)]),
    (r"[('O\'Brien',)]", [("O'Brien",)]),
    (r"[('C:\\new',)]", [(r"C:\new",)]),
    (r"[('C:\new',)]", [(r"C:\new",)]),
    ("[(None, NULL, null)]", [(None, None, None)]),
    ("[('None',)]", [("None",)]),
    ("[]", []),
    ("()", []),
    (" [ ] ", []),
    ("[(5,)]", [("5",)]),
    ("[(1e3,)]", [(1000,)]),
    ("[(-.5,)]", [(-0.5,)]),
    ("[(2, 'b'), (1, 'a')]", [(1, "a"), (2, "b")]),
    ("[(1,), (1,)]", [(1,), (1,)]),
    # Each first row fits the first gold row; only a pairing fits both.
    ("[(1.0000008,), (0.9999994,)]", [(1.0,), (1.0000015,)]),
]
WRONG: list[tuple[str, list[tuple[JsonValue, ...]]]] = [
    ("", [(1,)]),
    ("", []),
    (" \t", []),
    ("''", []),
    ("None", []),
    ("", [("",)]),
    ("[]", [(1,)]),
    ("[(1,)]", []),
    ("[(1, 2)]", [(1,), (2,)]),
    ("[(1,), (2,)]", [(1, 2)]),
    ("[(1,), (1,)]", [(1,)]),
    ("[(1,), (1,), (2,)]", [(1,), (2,), (2,)]),
    ("a", [("A",)]),
    ("[('1,5',)]", [(1.5,)]),
    ("nan", [(1,)]),
    ("inf", [(1,)]),
    ("None", [(0,)]),
    ("''", [(None,)]),
    ("'None'", [(None,)]),
    ("[(1", [(1,)]),
    ("[[[1]]]", [(1,)]),
    ("[(1,), 2]", [(1,), (2,)]),
    ("the answer is 1", [(1,)]),
    ("[(1)] done", [(1,)]),
    ("9" * 400, [(1,)]),
    ("1", [(10**400,)]),
]


@pytest.mark.parametrize(("answer", "gold"), RIGHT, ids=lambda value: str(value)[:30])
def test_the_golds_values_are_right_however_they_are_written(
    answer: str, gold: list[tuple[JsonValue, ...]]
) -> None:
    assert is_right_answer(answer, gold, is_ordered=False)


@pytest.mark.parametrize(("answer", "gold"), WRONG, ids=lambda value: str(value)[:30])
def test_other_values_are_wrong(answer: str, gold: list[tuple[JsonValue, ...]]) -> None:
    assert not is_right_answer(answer, gold, is_ordered=False)


@pytest.mark.parametrize(
    ("answer", "gold", "is_right"),
    [
        ("1000000.9", 1000000, True),
        ("1000001.1", 1000000, False),
        ("0.0000009", 0, True),
        ("0.0000011", 0, False),
        ("3.3333", 3.33333333, False),
    ],
)
def test_numbers_may_differ_by_a_millionth_relative_or_absolute(
    answer: str, gold: float, is_right: bool
) -> None:
    assert is_right_answer(answer, [(gold,)], is_ordered=False) is is_right


def test_order_matters_only_where_the_gold_orders() -> None:
    gold: list[tuple[JsonValue, ...]] = [("b",), ("a",)]
    assert is_right_answer("[('a',), ('b',)]", gold, is_ordered=False)
    assert not is_right_answer("[('a',), ('b',)]", gold, is_ordered=True)
    assert is_right_answer("[('b',), ('a',)]", gold, is_ordered=True)


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("(SELECT a FROM t ORDER BY a LIMIT 3);", True),
        ("SELECT a FROM t UNION SELECT b FROM t ORDER BY 1", True),
        ("WITH c AS (SELECT a FROM t) SELECT a FROM c ORDER BY a", True),
        ("SELECT a FROM t", False),
        ("SELECT dept, COUNT(*) FROM t GROUP BY dept", False),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 3) AS s", False),
        ("SELECT a FROM t WHERE b = (SELECT b FROM t ORDER BY b LIMIT 1)", False),
        ("SELECT 'order by' FROM t", False),
        ("SELECT SUM(a) OVER (ORDER BY b) FROM t", False),
        ("SELECT !! FROM ORDER  BY", True),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_an_order_is_that_of_the_whole_statement(sql: str, ordered: bool) -> None:
    assert is_ordered(sql) is ordered


def test_kinds_are_read_from_the_tree() -> None:
    assert kind_of("WITH c AS (SELECT 1) SELECT * FROM c") == "select"
    assert kind_of('delete from `t` where a = "x"') == "delete"
    assert kind_of("UPDATE t SET a = 1") == "update"
    assert kind_of("INSERT INTO t SELECT * FROM t") == "insert"
