"""Which database is used, and that its password stays where it belongs."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from consumers.commands.database import command
from consumers.database import location
from consumers.database.connection import connect
from consumers.database.location import (
    database_engine,
    libpq_url,
    resolve_database,
    sqlalchemy_url,
    without_password,
)
from consumers.embedded_postgres.binaries import find_binaries
from consumers.embedded_postgres.postgres import stop_running
from consumers.errors import UnreachableError, UsageError
from schemas.installation import read_installation
from tests.support.forked_command import run_command


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"DATABASE_URL": "postgresql://u:p@h:1/d"}, "postgresql+psycopg2://u:p@h:1/d"),
        (
            {"DATABASE_URL": "postgres://u@h/d?sslmode=require"},
            "postgresql+psycopg2://u@h/d?sslmode=require",
        ),
        (
            {"DATABASE_URL": "postgresql+asyncpg://u@h/d", "POSTGRES_HOST": "other"},
            "postgresql+psycopg2://u@h/d",
        ),
        (
            {"POSTGRES_HOST": "db"},
            "postgresql+psycopg2://training_user:training_password@db:5432/training_db",
        ),
        (
            {"POSTGRES_PASSWORD": "a:b@c/d"},
            "postgresql+psycopg2://training_user:a%3Ab%40c%2Fd@localhost:5432/training_db",
        ),
        (
            {
                "POSTGRES_HOST": "h",
                "POSTGRES_PORT": "6",
                "POSTGRES_DB": "d",
                "POSTGRES_USER": "u",
                "POSTGRES_PASSWORD": "p",
            },
            "postgresql+psycopg2://u:p@h:6/d",
        ),
    ],
)
def test_a_configured_database_is_used_as_the_recipe_configures_it(
    environ: dict[str, str], expected: str
) -> None:
    assert resolve_database(environ) == expected


def test_a_url_is_written_for_sqlalchemy_and_for_libpq() -> None:
    assert sqlalchemy_url("postgresql://u:p%40@h/d") == "postgresql+psycopg2://u:p%40@h/d"
    assert libpq_url("postgresql+psycopg2://u:p%40@h/d") == "postgresql://u:p%40@h/d"


@given(st.from_regex(location._PLAIN, fullmatch=True))
def test_a_url_that_is_not_parsed_is_what_sqlalchemy_makes_of_it(url: str) -> None:
    parsed = sa.make_url(url)
    for driver, given_url in (
        ("postgresql+psycopg2", sqlalchemy_url(url)),
        ("postgresql", libpq_url(url)),
    ):
        expected = parsed.set(drivername=driver).render_as_string(hide_password=False)
        assert sa.make_url(given_url) == sa.make_url(expected)
    named = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
    assert sa.make_url(without_password(url)) == sa.make_url(named)
    assert without_password("postgresql+psycopg2://u:p@h/d") == "postgresql://u:***@h/d"


@pytest.mark.parametrize(
    "url", ["mysql://u:s3cret@h/d", "s3cret", "postgresql://u:s3cret@h:port/d"]
)
def test_what_is_no_postgresql_url_is_a_usage_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(UsageError, match="the database URL") as caught:
        resolve_database({"DATABASE_URL": url})
    assert "s3cret" not in str(caught.value)


def test_a_port_that_is_no_number_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="POSTGRES_PORT"):
        resolve_database({"POSTGRES_PORT": "x"})


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/") as caught:
        connect("postgresql://someone:s3cret@127.0.0.1:1/nowhere", "test")
    assert "s3cret" not in str(caught.value)
    assert "DATABASE_URL" in str(caught.value)


@pytest.mark.services
def test_a_wrong_password_is_not_repeated_by_the_error(database_url: str) -> None:
    parts = libpq_url(database_url).partition("@")
    wrong = parts[0].rpartition(":")[0] + ":s3cret@" + parts[2]
    with pytest.raises(UnreachableError, match="password authentication failed") as caught:
        connect(wrong, "test")
    assert "s3cret" not in str(caught.value)


@pytest.mark.services
def test_a_connection_that_the_server_closed_is_replaced(database_url: str) -> None:
    engine = database_engine(database_url)
    with engine.connect() as first:
        first.exec_driver_sql("SELECT 1")
    with connect(database_url, "test").cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
            " current_database() AND pid <> pg_backend_pid()"
        )
    with engine.connect() as second:
        assert second.exec_driver_sql("SELECT 2").scalar() == 2
    engine.dispose()


@pytest.fixture
def home() -> Iterator[Path]:
    folder = read_installation(os.environ).database_dir
    yield folder
    stop_running(folder)


@pytest.mark.services
def test_the_command_starts_the_embedded_database_and_stops_it(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    printed = CliRunner().invoke(command, ["--json"], catch_exceptions=False)
    answer = json.loads(printed.stdout)
    assert answer["embedded"] is True
    assert CliRunner().invoke(command).stdout == answer["url"] + "\n"
    connect(answer["url"], "test").close()
    assert home.is_dir()
    stopped = CliRunner().invoke(command, ["stop"])
    assert (stopped.exit_code, stopped.stdout) == (0, "")
    assert caplog.messages[-1] == "stopped the embedded database"
    CliRunner().invoke(command, ["stop"])
    assert caplog.messages[-1] == "the embedded database is not running"


def test_a_configured_database_is_not_ours_to_stop() -> None:
    for name, value in (("DATABASE_URL", "postgresql://me@db/x"), ("POSTGRES_HOST", "db")):
        done = run_command("consumers", "database", "stop", environ={**os.environ, name: value})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {name} in the environment selects your own database")
        assert f"; unset {name} to stop the embedded one of" in done.stderr


def test_programs_are_looked_for_by_the_version_that_made_the_cluster() -> None:
    newest = find_binaries(os.environ)
    assert find_binaries(os.environ, newest.major) == newest
    with pytest.raises(UnreachableError, match="made by PostgreSQL 3"):
        find_binaries(os.environ, 3)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@127.0.0.1:1/runs?password=s3cret",
        "postgresql://127.0.0.1:1/runs?user=me&password=s3cret",
        "postgresql://me@127.0.0.1:1/runs?sslpassword=s3cret&sslmode=require",
        "postgresql://me@127.0.0.1:1/runs?oauth_client_secret=s3cret",
    ],
)
def test_no_secret_of_the_url_is_in_a_message(url: str) -> None:
    with pytest.raises((UnreachableError, UsageError)) as raised:
        connect(url, "test")
    assert "s3cret" not in str(raised.value)
    assert "s3cret" not in without_password(url)


def test_a_parameter_that_libpq_does_not_know_is_a_usage_error() -> None:
    said = r"\(DATABASE_URL\) is malformed: .*\"nooption\"; correct it"
    with pytest.raises(UsageError, match=said):
        connect("postgresql://me:s3cret@127.0.0.1:1/runs?nooption=1", "test")
