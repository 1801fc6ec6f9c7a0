"""The form of a gold: what is left of its SQL without its values."""

import pytest

from producer.sql_data.gold_form import gold_form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE n > 5", "select A from T where n > 71"),
        ("SELECT a FROM t WHERE n > 5", "SELECT `a` FROM t\nWHERE n > -2.5"),
        ("SELECT a FROM t WHERE a = 'x'", "SELECT a FROM t WHERE a = 'it''s'"),
        ("SELECT a FROM t ORDER BY n LIMIT 1", "SELECT a FROM t ORDER BY n LIMIT 9"),
        ("DELETE FROM t WHERE n = 1 AND b = 'y'", "DELETE FROM t WHERE n = 2 AND b = 'z'"),
    ],
)
def test_golds_that_differ_in_values_case_and_space_have_one_form(one: str, other: str) -> None:
    assert gold_form(one, "mysql") == gold_form(other, "mysql")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE n > 5", "SELECT a FROM t WHERE n < 5"),
        ("SELECT a FROM t WHERE n > 5", "SELECT b FROM t WHERE n > 5"),
        ("SELECT a FROM t WHERE n > 5", "SELECT a FROM u WHERE n > 5"),
        ("SELECT a FROM t", "SELECT a FROM t WHERE n > 5"),
        ("SELECT 1 - n FROM t", "SELECT n - 1 FROM t"),
    ],
)
def test_golds_that_differ_in_anything_else_have_two(one: str, other: str) -> None:
    assert gold_form(one, "sqlite") != gold_form(other, "sqlite")


def test_the_name_of_an_only_table_is_a_value_where_it_is_given() -> None:
    cars, books = "SELECT cars.a FROM cars", "SELECT books.a FROM Books"
    assert gold_form(cars, "mysql", "cars") == gold_form(books, "mysql", "books")
    assert gold_form(cars, "mysql") != gold_form(books, "mysql")


def test_a_text_that_is_no_sql_is_its_own_form() -> None:
    assert gold_form("SELECT  FROM (", "sqlite") == "select from ("
