"""MySQL's types of columns, as Agent-PEFT's scripts and other data sets declare them."""

import json
from hashlib import md5
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.data.column_types import column_type
from producer.agents.dbbench.data.layout import read_entries
from producer.agents.dbbench.data.table import open_embedded, state_after
from producer.errors import UsageError
from producer.sql_execution import SqlRefusedError
from schemas.entry import Column, TableInfo


@pytest.mark.parametrize(
    ("declared", "given", "stored", "written"),
    [
        ("INT", "7.5", 8, "8"),
        ("int(11) unsigned", 4_294_967_295, 4_294_967_295, "4294967295"),
        ("tinyint", -128, -128, "-128"),
        ("BOOLEAN", True, 1, "1"),
        ("BIGINT", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
        ("DECIMAL(10,2)", 999.99, 999.99, "999.99"),
        ("decimal( 10 , 2 )", 100, 100.0, "100.00"),
        ("DECIMAL(10,2)", "1.005", 1.01, "1.01"),
        ("DECIMAL(10,2)", -0.001, 0.0, "0.00"),
        ("NUMERIC", 1.5, 2.0, "2"),
        ("DOUBLE PRECISION", 0.5, 0.5, "0.5"),
        ("FLOAT", 3, 3.0, "3"),
        ("VARCHAR(5)", "Aliçe", "Aliçe", "Aliçe"),
        ("VARCHAR(5)", 12, "12", "12"),
        ("char", "x", "x", "x"),
        ("LongText", "x" * 300, "x" * 300, "x" * 300),
        ("DATE", "2024-01-31", "2024-01-31", "2024-01-31"),
        ("DATETIME", "2024-01-31 10:00:00", "2024-01-31 10:00:00", "2024-01-31 10:00:00"),
        ("DECIMAL(10,2)", None, None, None),
        ("DECIMAL(6,0)", "2.5", 3.0, "3"),
        ("DECIMAL(10,2) UNSIGNED", 0.5, 0.5, "0.50"),
        ("DOUBLE", 1e-7, 1e-7, "0.0000001"),
        ("DOUBLE", 1e20, 1e20, "1e20"),
        ("DOUBLE(10,2)", 1.005, 1.01, "1.01"),
        ("FLOAT", 0.1, 0.10000000149011612, "0.1"),
        ("FLOAT", 123456.789, 123456.7890625, "123457"),
        ("FLOAT(10,2)", 123456.785, 123456.7890625, "123456.79"),
        ("FLOAT(53)", 123456.789, 123456.789, "123456.789"),
        ("YEAR", "2024", 2024, "2024"),
        ("CHAR(3)", "ab ", "ab", "ab"),
        ("VARCHAR(3)", "abc  ", "abc", "abc"),
        ("DATE", "2024-1-5", "2024-01-05", "2024-01-05"),
        ("DATE", "20240105", "2024-01-05", "2024-01-05"),
        ("DATETIME", "2024-01-31", "2024-01-31 00:00:00", "2024-01-31 00:00:00"),
        ("TIMESTAMP", "2024-01-31T10:00", "2024-01-31 10:00:00", "2024-01-31 10:00:00"),
        ("DATETIME", "2024-12-31 23:59:59.5", "2025-01-01 00:00:00", "2025-01-01 00:00:00"),
        ("TIME", "9:05:00", "09:05:00", "09:05:00"),
        ("TIME", "-120:00", "-120:00:00", "-120:00:00"),
    ],
)
def test_a_value_is_stored_and_written_as_in_mysql(
    declared: str, given: JsonValue, stored: object, written: str | None
) -> None:
    type_ = column_type(declared)
    value = type_.value(given)
    assert value == stored
    assert type_.text_of(value) == written


@pytest.mark.parametrize(
    ("declared", "given", "reason"),
    [
        ("TINYINT", 128, "128 is out of range of a TINYINT"),
        ("INT UNSIGNED", -1, "-1 is out of range of an INT UNSIGNED"),
        ("DECIMAL(4,2)", 100, "100 is out of range of a DECIMAL(4,2)"),
        ("DOUBLE", "1e999", "out of range of a DOUBLE"),
        ("DECIMAL(10,2)", "x", "'x' is no number"),
        ("VARCHAR(3)", "four", "'four' has 4 characters, too many for VARCHAR(3)"),
        ("DATE", "31.1.2024", "'31.1.2024' is not a valid DATE; write it as 2024-01-31"),
        ("TEXT", True, "True is no text"),
        ("DATE", "2023-02-29", "'2023-02-29' is not a valid DATE; write it as 2024-01-31"),
        (
            "DATETIME",
            "2024-13-01 10:00:00",
            "is not a valid DATETIME; write it as 2024-01-31 10:00:00",
        ),
        ("TIME", "23:61:00", "'23:61:00' is not a valid TIME; write it as 10:00:00"),
        ("YEAR", 1900, "1900 is out of range of a YEAR"),
        ("FLOAT", 1e39, "1e+39 is out of range of a FLOAT"),
        ("DOUBLE UNSIGNED", -1, "-1 is out of range of a DOUBLE UNSIGNED"),
        ("DECIMAL(10,2) UNSIGNED", "-0.01", "-0.01' is out of range of a DECIMAL(10,2) UNSIGNED"),
        ("DOUBLE(4,2)", 100, "100 is out of range of a DOUBLE(4,2)"),
    ],
)
def test_a_value_that_mysql_would_refuse_is_refused(
    declared: str, given: JsonValue, reason: str
) -> None:
    with pytest.raises(ValueError, match=r"^") as refused:
        column_type(declared).value(given)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "declared",
    [
        *("TEXT(3,1)", "DECIMAL(2,3)", "DECIMAL(40,2)", "INT(1,2)", "DATETIME(1,2)"),
        *("DOUBLE(20,2)", "DOUBLE(5)", "YEAR(2)", "TINYTEXT(5)", "STRING"),
    ],
)
def test_another_type_is_refused_with_those_that_there_are(declared: str) -> None:
    with pytest.raises(ValueError, match=r"is not supported; .*VARCHAR\(50\)"):
        column_type(declared)


PRODUCTS = TableInfo(
    name="products",
    columns=(
        Column(name="name", type="VARCHAR(50)"),
        Column(name="price", type="DECIMAL(10,2)"),
        Column(name="quantity", type="INT"),
    ),
    rows=(("Laptop", 999.99, 10), ("Desk", 300, 5)),
)


def state(*rows: str) -> str:
    """By hand, as DB Bench's formula in MySQL."""
    hashes = sorted(md5(row.encode(), usedforsecurity=False).hexdigest()[:5] for row in rows)
    return md5(",".join(hashes).encode(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("DELETE FROM products WHERE quantity > 5", ("Desk,300.00,5",)),
        ("UPDATE products SET price = price / 3 WHERE name = 'Desk'",
         ("Laptop,999.99,10", "Desk,100.00,5")),
        ("INSERT INTO products VALUES ('Pen', 1.005, 2.5)",
         ("Laptop,999.99,10", "Desk,300.00,5", "Pen,1.01,3")),
    ],
)  # fmt: skip
def test_a_state_is_hashed_as_mysql_writes_its_types(sql: str, rows: tuple[str, ...]) -> None:
    assert state_after(PRODUCTS, sql) == state(*rows)


@pytest.mark.parametrize(
    "sql",
    [
        f"UPDATE products SET name = '{'x' * 51}'",
        "UPDATE products SET price = 123456789",
        "UPDATE products SET price = 'cheap'",
    ],
)
def test_a_statement_that_breaks_a_type_is_refused(sql: str) -> None:
    with pytest.raises(SqlRefusedError):
        state_after(PRODUCTS, sql)


def test_decimals_are_computed_exactly() -> None:
    database = open_embedded(PRODUCTS)
    try:
        asked = "SELECT SUM(price), AVG(price) FROM products WHERE price > '299.99'"
        assert database.execute(asked).rows == ((1299.99, 649.995),)
    finally:
        database.close()


VISITS = TableInfo(
    name="visits",
    columns=(
        Column(name="day", type="DATE"),
        Column(name="begin", type="DATETIME"),
        Column(name="fee", type="DECIMAL(8,2)"),
        Column(name="rate", type="FLOAT"),
        Column(name="id", type="BIGINT"),
    ),
    rows=(
        ("2024-01-05", "2024-01-05 00:00:00", 300, 99.99, 2**53 + 1),
        ("2024-02-10", "2024-02-10 09:30:00", 0.5, 123456.789, 2),
    ),
)


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT COUNT(*) FROM visits WHERE day > '2024-1-9'", (1,)),
        ("SELECT COUNT(*) FROM visits WHERE day = 20240105", (1,)),
        ("SELECT COUNT(*) FROM visits WHERE begin = '2024-01-05'", (1,)),
        ("SELECT COUNT(*) FROM visits WHERE begin BETWEEN '2024-01-01' AND '2024-01-05'", (1,)),
        ("SELECT COUNT(*) FROM visits WHERE day IN ('2024-1-5', '2024-2-10')", (2,)),
        ("SELECT COUNT(*) FROM visits WHERE day < '2024-01-05 10:00:00'", (1,)),
        ("SELECT COUNT(*) FROM visits WHERE day = begin", (1,)),
        ("SELECT CONCAT(fee, '/', rate) FROM visits WHERE id = 2", ("0.50/123457",)),
        ("SELECT LENGTH(fee), CAST(fee AS CHAR) FROM visits WHERE fee = 300", (6, "300.00")),
        ("SELECT MAX(rate) FROM visits", (123457.0,)),
        ("SELECT COUNT(*) FROM visits WHERE rate = 99.99", (0,)),
        ("SELECT MAX(id) FROM visits", (2**53 + 1,)),
    ],
)
def test_types_count_in_statements(sql: str, row: tuple[object, ...]) -> None:
    database = open_embedded(VISITS)
    try:
        assert database.execute(sql).rows == (row,)
    finally:
        database.close()


def test_what_is_written_is_stored_by_its_type() -> None:
    written = (
        "INSERT INTO visits VALUES ('2024-3-1', '2024-03-01 08:00:00.7', 1.005, 0.1, 2.5)",
        "UPDATE visits SET fee = fee + 1 WHERE id > 3",
        "UPDATE visits SET begin = '2024-12-24', day = '20241224' WHERE id = 2",
    )
    database = open_embedded(VISITS)
    try:
        for sql in written:
            database.execute(sql)
        assert {*database.table_rows("visits", ["day", "begin", "fee", "id"])} == {
            ("2024-03-01", "2024-03-01 08:00:01", 1.01, 3),
            ("2024-01-05", "2024-01-05 00:00:00", 301.0, 2**53 + 1),
            ("2024-12-24", "2024-12-24 00:00:00", 0.5, 2),
        }
        with pytest.raises(SqlRefusedError):
            database.execute("UPDATE visits SET day = '2024-02-30'")
    finally:
        database.close()


def entry(md5: JsonValue, direct: JsonValue = None, sql: str | None = None) -> dict[str, object]:
    """As create_minimal_test_data.py of Agent-PEFT writes it."""
    users = {
        "name": "users",
        "column_info_list": [
            {"name": "name", "type": "VARCHAR(50)"},
            {"name": "age", "type": "INT"},
        ],
        "row_list": [["Alice", 25], ["Bob", 30]],
    }
    insert = "INSERT INTO users (name, age) VALUES ('David', 28)"
    return {
        "answer_info": {"direct": direct, "md5": md5, "sql": sql or insert},
        "table_info": users,
        "instruction": "Insert a new user named David who is 28 years old.",
        "skill_list": ["insert"],
    }


@pytest.mark.parametrize(
    ("md5", "direct"),
    [
        ("abc123def456", None),
        (None, None),
        ("", []),
        ("TODO", None),
        (state("Alice,25", "Bob,30", "David,28").upper(), None),
    ],
)
def test_a_missing_hash_and_a_placeholder_are_computed(
    md5: JsonValue, direct: JsonValue, tmp_path: Path
) -> None:
    (tmp_path / "entry_dict.json").write_text(json.dumps({"4": entry(md5, direct)}))
    (read,) = read_entries(tmp_path)
    assert read.answer_md5 == state("Alice,25", "Bob,30", "David,28")
    assert read.answer_direct is None


def test_a_hash_that_cannot_be_computed_is_named(tmp_path: Path) -> None:
    broken = entry("abc123", sql="INSERT INTO nowhere VALUES (1)")
    (tmp_path / "entry_dict.json").write_text(json.dumps({"4": broken}))
    with pytest.raises(UsageError, match=r"answer_info\.md5: it is missing, and cannot be"):
        read_entries(tmp_path)
