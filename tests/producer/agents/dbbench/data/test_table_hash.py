"""The hash of a table's state, against md5sum at a shell and the server's own MD5."""

import pytest

from producer.agents.dbbench.data.table import (
    LIMITS,
    open_embedded,
    row_hash,
    server_setup,
    state_hash,
    table_hash,
)
from producer.sql_execution.mysql_admin import administrator, parse_server_url
from producer.sql_execution.mysql_session import MysqlDatabase
from schemas.entry import Column, TableInfo
from tests.support.mariadb import MariaDbServer

BY_THE_SERVER = (
    "SELECT MD5(GROUP_CONCAT(hash ORDER BY hash))"
    " FROM (SELECT SUBSTRING(MD5(CONCAT_WS(',', id, name)), 1, 5) AS hash FROM t) AS s"
)

# printf '1,a' | md5sum, its first five digits; printf '2' | md5sum.
ONE_A = "ad7b7"
TWO = "c81e7"
# printf '<both, sorted, with a comma>' | md5sum
BOTH = "3244aa9480ab1ff53689d8d1022622ac"


def test_a_row_is_hashed_with_its_values_joined_by_commas() -> None:
    assert row_hash((1, "a")) == ONE_A


def test_null_is_skipped_wherever_it_stands() -> None:
    assert row_hash((2, None)) == row_hash((None, 2)) == TWO
    assert row_hash((None, None)) == "d41d8"  # of the empty text


def test_rows_are_hashed_in_any_order() -> None:
    assert table_hash([(1, "a"), (2, None)]) == table_hash([(2, None), (1, "a")]) == BOTH


def test_the_same_row_twice_is_another_table() -> None:
    assert table_hash([(1, "a")]) != table_hash([(1, "a"), (1, "a")])


def test_an_empty_table_has_the_hash_that_a_client_shows_of_null() -> None:
    assert table_hash([]) == "None"


def test_a_whole_number_has_no_point() -> None:
    assert row_hash((2.0, None)) == TWO


@pytest.mark.parametrize(
    "rows",
    [
        ((1, "a"), (2, None)),
        ((None, None), (0, ""), (-5, "a,b"), (None, "é ")),
        tuple((number, f"name {number % 7}") for number in range(50)),
        (),
    ],
    ids=["two", "odd", "fifty", "none"],
)
def test_the_server_computes_the_same(
    mariadb: MariaDbServer, rows: tuple[tuple[int | str | None, ...], ...]
) -> None:
    columns = (Column(name="id", type="INT"), Column(name="name", type="TEXT"))
    table = TableInfo(name="t", columns=columns, rows=rows)
    admin = administrator(parse_server_url(mariadb.url))
    database = MysqlDatabase(admin, server_setup(table), LIMITS)
    ((expected,),) = admin.run(database._named().name, BY_THE_SERVER)
    assert table_hash(database.table_rows("t", ["id", "name"])) == str(expected)
    database.close()


def test_the_server_computes_the_same_of_every_type(mariadb: MariaDbServer) -> None:
    columns = (
        Column(name="id", type="DECIMAL(10,2)"),
        Column(name="name", type="TIME"),
        *(
            Column(name=f"c{number}", type=type_)
            for number, type_ in enumerate(
                ("DOUBLE", "FLOAT", "FLOAT(10,2)", "DOUBLE(10,3)", "DATETIME", "DATE", "YEAR"), 1
            )
        ),
    )
    rows = (
        (300, "9:05:00", 1e-7, 123456.789, 123456.785, 2, "2024-01-31", "2024-1-31", 2024),
        (-0.5, "-01:00:00", 1e20, 16777217, 0.1, -1.0005, "1999-12-31 23:59:59", None, 1901),
        (None, "120:00:00", 0.1, 1e10, None, None, None, "2024-02-29", None),
        (0, "00:00:00", 1e15, 1e-5, 99.999, 12345.6789, "2024-06-01 00:00:00", "2000-01-01", 2155),
    )
    table = TableInfo(name="t", columns=columns, rows=rows)
    admin = administrator(parse_server_url(mariadb.url))
    server = MysqlDatabase(admin, server_setup(table), LIMITS)
    embedded = open_embedded(table)
    listed = ", ".join(column.name for column in columns)
    asked = BY_THE_SERVER.replace("id, name", listed)
    ((expected,),) = admin.run(server._named().name, asked)
    for database in (server, embedded):
        assert state_hash(database, table) == str(expected)
        database.close()
