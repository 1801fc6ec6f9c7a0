"""Columns as people's scripts declare them: MySQL's synonyms and attributes."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents.dbbench.data.column_types import column_type
from producer.agents.dbbench.data.layout import read_entries
from producer.agents.dbbench.data.table import open_embedded, table_rows
from producer.errors import UsageError
from producer.sql_execution import SqlRefusedError
from schemas.entry import Column, TableInfo
from tests.support.declarations import DECLARATIONS


@pytest.mark.parametrize(("declared", "definition"), DECLARATIONS)
def test_a_declaration_is_read_as_mysql_reads_it(declared: str, definition: str) -> None:
    assert column_type(declared).definition == definition
    assert column_type(definition).definition == definition
    assert column_type(f" {declared.lower()}\n").kind == column_type(definition).kind


@pytest.mark.parametrize(
    ("declared", "what_to_do"),
    [
        ("TIMESTAMP(3)", "write TIMESTAMP instead of TIMESTAMP(3), whose fractions of a second"),
        ("datetime(6) NOT NULL", "write DATETIME instead of DATETIME(6), whose fractions"),
        ("TIME(2)", "write TIME instead of TIME(2), whose fractions"),
        ("ENUM('a','b')", "write VARCHAR(50) instead of ENUM, whose values are sorted by"),
        ("SET('a','b')", "write VARCHAR(50) instead of SET, whose values are sorted as numbers"),
        ("JSON", "write TEXT instead of JSON, whose values are compared as documents"),
        ("BIT", "write INT UNSIGNED instead of BIT, which is shown as bytes"),
        ("BIT(8)", "write INT UNSIGNED instead of BIT"),
        ("BINARY", "write TEXT or VARCHAR(50) instead of BINARY, which holds bytes"),
        ("BINARY(16)", "write TEXT or VARCHAR(50) instead of BINARY,"),
        ("VARBINARY(5)", "write TEXT or VARCHAR(50) instead of VARBINARY,"),
        ("BLOB(100)", "write TEXT or VARCHAR(50) instead of BLOB,"),
        ("MEDIUMBLOB", "write TEXT or VARCHAR(50) instead of MEDIUMBLOB,"),
        ("LONG VARBINARY", "write TEXT or VARCHAR(50) instead of LONG VARBINARY,"),
        ("VARCHAR", "write VARCHAR(50) instead of VARCHAR, which needs a length"),
        ("NVARCHAR", "write VARCHAR(50) instead of VARCHAR, which needs a length"),
        ("INT(5) ZEROFILL", "write UNSIGNED instead of ZEROFILL, which writes zeros before"),
        ("INT AUTO_INCREMENT", "write AUTO_INCREMENT PRIMARY KEY instead of AUTO_INCREMENT"),
        ("FLOAT AUTO_INCREMENT PRIMARY KEY", "leave out AUTO_INCREMENT: it needs a column"),
        ("INT AUTO_INCREMENT KEY DEFAULT 1", "leave out DEFAULT: the column is AUTO_INCREMENT"),
        ("TEXT PRIMARY KEY", "write VARCHAR(50) instead of TEXT, which is too long for PRIMARY"),
        ("VARCHAR(769) UNIQUE", "write VARCHAR(50) instead of VARCHAR(769), which is too long"),
        ("TEXT DEFAULT 'x'", "write VARCHAR(50) instead of TEXT, which has no default"),
        ("INT DEFAULT 'x'", "leave out DEFAULT: 'x' is no number"),
        ("TINYINT DEFAULT 128", "leave out DEFAULT: '128' is out of range of a TINYINT"),
        ("INT NOT NULL DEFAULT NULL", "leave out DEFAULT NULL: the column is NOT NULL"),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "leave out DEFAULT CURRENT_TIMESTAMP: a default"),
        ("DATE DEFAULT (NOW())", "leave out DEFAULT (: a default is a number, a text, TRUE,"),
        ("DATETIME ON UPDATE CURRENT_TIMESTAMP", "leave out ON UPDATE: here an UPDATE"),
        ("VARCHAR(9) BINARY", "leave out BINARY: texts are compared without case and accents"),
        ("VARCHAR(9) COLLATE utf8mb4_bin", "leave out COLLATE utf8mb4_bin: texts are compared"),
        ("VARCHAR(9) COLLATE utf8mb4_sv_0900_ai_ci", "leave out COLLATE utf8mb4_sv_0900_ai_ci"),
        ("VARCHAR(9) CHARACTER SET latin1", "leave out CHARACTER SET latin1: texts are of utf8mb4"),
        ("INT CHECK (age > 0)", "leave out CHECK: CHECK conditions are not enforced here"),
        ("INT REFERENCES t (id)", "leave out REFERENCES: there is one table"),
        ("INT GENERATED ALWAYS AS (1)", "leave out GENERATED: the attributes are NULL, NOT NULL,"),
        ("INT;", "leave out ;: the attributes are NULL, NOT NULL,"),
        ("INT COMMENT", "leave out COMMENT: a comment is a text in quotes"),
        *((unknown, "use one of MySQL's") for unknown in ("UUID", "DECIMAL(40,2)")),
        *((unknown, "use one of MySQL's") for unknown in ("TEXT UNSIGNED", "INT()", "(", "")),
        *((broken, "use one of MySQL's") for broken in ("INT DEFAULT 'x", "CHAR(1) DEFAULT '\\0'")),
    ],
)  # fmt: skip
def test_a_declaration_that_is_refused_is_named_with_what_to_write(
    declared: str, what_to_do: str
) -> None:
    with pytest.raises(ValueError, match="is not supported; ") as refused:
        column_type(declared)
    assert f"column type {declared!r} is not supported; {what_to_do}" in str(refused.value)


def test_a_default_is_stored_as_its_type_stores_it() -> None:
    defaults = {
        "DECIMAL(6,2) DEFAULT 1.005": 1.01,
        "INT DEFAULT '7.5'": 8,
        "BOOL DEFAULT TRUE": 1,
        "DATE DEFAULT '2000-1-2'": "2000-01-02",
        "VARCHAR(20) DEFAULT 1.50": "1.50",
        "VARCHAR(20) DEFAULT 'It''s \\'a\\' \"b\"'": "It's 'a' \"b\"",
        'VARCHAR(20) DEFAULT "say ""hi"""': 'say "hi"',
        "CHAR(5) DEFAULT 'a  '": "a",
        "INT DEFAULT NULL": None,
    }
    assert {text: column_type(text).rules.default for text in defaults} == defaults


def table(*types: str, rows: tuple[tuple[JsonValue, ...], ...] = ()) -> TableInfo:
    """Its columns are a, b, c."""
    columns = tuple(
        Column(name=name, type=type_) for name, type_ in zip("abc", types, strict=False)
    )
    return TableInfo(name="t", columns=columns, rows=rows)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (table("INT NOT NULL", rows=((None,),)), "row_list[0], column a: it is NULL, but the"),
        (table("SERIAL", rows=((0,),)), "column a: MySQL replaces 0 in an AUTO_INCREMENT column"),
        (
            table("VARCHAR(9) UNIQUE", rows=((None,), (None,), ("Oslo",), ("oslo ",))),
            "row_list[3], column a: 'oslo ' is in row_list[2], too; the column is UNIQUE",
        ),
        (
            table("INT PRIMARY KEY", rows=((1,), (1.2,))),
            "row_list[1], column a: 1 is in row_list[0], too; the column is PRIMARY KEY",
        ),
        (
            table("INT KEY", "INT KEY"),
            "column_info_list: 2 columns are PRIMARY KEY; at most one may be",
        ),
        (
            table("SERIAL", "SERIAL"),
            "column_info_list: 2 columns are AUTO_INCREMENT; at most one may be",
        ),
    ],
)
def test_rows_that_break_an_attribute_are_refused(given: TableInfo, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^") as refused:
        table_rows(given)
    assert reason in str(refused.value)


USERS = table(
    "INT AUTO_INCREMENT PRIMARY KEY",
    "VARCHAR(20) NOT NULL UNIQUE COMMENT 'as written'",
    "DECIMAL(6,2) NOT NULL DEFAULT 1.005",
    rows=((1, "ann", 2), (4, "bob", 3)),
)


@pytest.mark.parametrize(
    ("statements", "rows"),
    [
        (["INSERT INTO t (b) VALUES ('eve')"],
         [(1, "ann", 2.0), (4, "bob", 3.0), (5, "eve", 1.01)]),
        (["INSERT INTO t VALUES (NULL, 'eve', 1), (9, 'joe', 2), (NULL, 'sue', 3)"],
         [(1, "ann", 2.0), (4, "bob", 3.0), (5, "eve", 1.0), (9, "joe", 2.0), (10, "sue", 3.0)]),
        (["DELETE FROM t WHERE a = 4", "INSERT INTO t (b) VALUES ('eve')"],
         [(1, "ann", 2.0), (5, "eve", 1.01)]),
        (["REPLACE INTO t (a, b) VALUES (1, 'eve')"], [(1, "eve", 1.01), (4, "bob", 3.0)]),
        (["REPLACE INTO t (b) VALUES ('ANN')"], [(4, "bob", 3.0), (5, "ANN", 1.01)]),
        (["UPDATE t SET b = 'Ann' WHERE a = 1"], [(1, "Ann", 2.0), (4, "bob", 3.0)]),
        (["DELETE FROM t ORDER BY c DESC LIMIT 1"], [(1, "ann", 2.0)]),
    ],
)  # fmt: skip
def test_attributes_count_in_statements(
    statements: list[str], rows: list[tuple[object, ...]]
) -> None:
    database = open_embedded(USERS)
    try:
        for sql in statements:
            database.execute(sql)
        assert sorted(database.table_rows("t", ["a", "b", "c"])) == rows
    finally:
        database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (c) VALUES (1)",
        "INSERT INTO t (b) VALUES ('Ann ')",
        "INSERT INTO t (a, b) VALUES (1, 'eve')",
        "INSERT INTO t (a, b) VALUES (0, 'eve')",
        "INSERT INTO t (b, c) VALUES ('eve', NULL)",
        "REPLACE INTO t (b, c) VALUES ('eve', NULL)",
        "UPDATE t SET b = NULL",
        "UPDATE t SET a = NULL WHERE a = 1",
        "UPDATE t SET b = 'same'",
        "INSERT INTO t (b) VALUES ('ann') ON DUPLICATE KEY UPDATE c = 7",
    ],
)
def test_a_statement_that_breaks_an_attribute_changes_nothing(sql: str) -> None:
    database = open_embedded(USERS)
    try:
        with pytest.raises(SqlRefusedError):
            database.execute(sql)
        rows = database.table_rows("t", ["a", "b", "c"])
        assert sorted(rows) == [(1, "ann", 2.0), (4, "bob", 3.0)]
    finally:
        database.close()


def test_a_file_is_refused_with_the_column_and_what_to_write(tmp_path: Path) -> None:
    content = {
        "instruction": "Add Eve.",
        "table_info": {
            "name": "t", "column_info_list": [{"name": "a", "type": "JSON"}], "row_list": [],
        },
        "answer_info": {"sql": "INSERT INTO t VALUES ('{}')"},
    }  # fmt: skip
    (tmp_path / "entry_dict.json").write_text(json.dumps({"4": content}))
    where = (
        r"entry '4': table_info.column_info_list\[0\].type: column type 'JSON' is not supported;"
    )
    with pytest.raises(UsageError, match=rf"{where} write TEXT instead of JSON, whose values"):
        read_entries(tmp_path)
