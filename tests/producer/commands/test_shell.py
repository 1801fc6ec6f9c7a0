"""Printed commands: which variables they carry or only name, and how the program is found."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from producer.commands.shell import (
    continue_command,
    cua_project_command,
    cua_train_command,
    withheld,
)
from schemas import programs
from schemas.programs import program


def variables(command: str) -> dict[str, str]:
    words = shlex.split(command)
    return dict(word.split("=", 1) for word in words if word.split("=")[0].isupper())


def test_paths_become_absolute_and_survive_spaces_and_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {
        "CUA_HOME": "it's $HOME",
        "CUA_BLOBS": "my blobs",
        "KAFKA_BOOTSTRAP_SERVERS": "a:1,b:2",
        "KAFKA_SSL_CAFILE": "ca.pem",
        "CUA_TOPIC_PREFIX": "team.",
    }
    command = continue_command("训练", log_path=Path("my run"), environ=environ)
    assert variables(command) == {
        "CUA_HOME": str(tmp_path / "it's $HOME"),
        "CUA_BLOBS": str(tmp_path / "my blobs"),
        "KAFKA_BOOTSTRAP_SERVERS": "a:1,b:2",
        "KAFKA_SSL_CAFILE": str(tmp_path / "ca.pem"),
        "CUA_TOPIC_PREFIX": "team.",
    }
    words = shlex.split(command)
    assert words[-5:] == ["run", "--training-name", "训练", "--log-path", str(tmp_path / "my run")]


@pytest.mark.parametrize(
    ("environ", "shown", "hidden"),
    [
        ({}, {}, []),
        ({"XDG_DATA_HOME": "/data"}, {"CUA_HOME": "/data/cua-train"}, []),
        # Without a server the other settings of Kafka mean nothing.
        ({"KAFKA_SECURITY_PROTOCOL": "SSL"}, {}, []),
        (
            {
                "KAFKA_BOOTSTRAP_SERVERS": "a:1",
                "KAFKA_SASL_MECHANISM": "PLAIN",
                "KAFKA_SASL_PLAIN_USERNAME": "me",
                "KAFKA_SASL_PLAIN_PASSWORD": "s3cret",
                "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "id",
                "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "s3cret",
                "KAFKA_SASL_OAUTHBEARER_EXTENSIONS": "token=s3cret",
                "KAFKA_SSL_PASSWORD": "s3cret",
            },
            {
                "KAFKA_BOOTSTRAP_SERVERS": "a:1",
                "KAFKA_SASL_MECHANISM": "PLAIN",
                "KAFKA_SASL_PLAIN_USERNAME": "me",
                "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "id",
            },
            [
                "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET",
                "KAFKA_SASL_OAUTHBEARER_EXTENSIONS",
                "KAFKA_SASL_PLAIN_PASSWORD",
                "KAFKA_SSL_PASSWORD",
            ],
        ),
        ({"CUA_BLOBS": "s3://bucket/a"}, {"CUA_BLOBS": "s3://bucket/a"}, []),
        ({"CUA_BLOBS": "s3://key:s3cret@bucket/a"}, {}, ["CUA_BLOBS"]),
        ({"CUA_BLOBS": "/data/a@b"}, {"CUA_BLOBS": "/data/a@b"}, []),
        ({"DATABASE_URL": "postgresql://me@db/x"}, {"DATABASE_URL": "postgresql://me@db/x"}, []),
        ({"DATABASE_URL": "postgresql://me:s3cret@db/x"}, {}, ["DATABASE_URL"]),
        ({"DATABASE_URL": "postgresql://db/x?user=me&password=s3cret"}, {}, ["DATABASE_URL"]),
        (
            {"POSTGRES_HOST": "db", "POSTGRES_PASSWORD": "s3cret"},
            {"POSTGRES_HOST": "db"},
            ["POSTGRES_PASSWORD"],
        ),
    ],
)
def test_what_names_the_installation_is_printed_and_secrets_are_named(
    environ: dict[str, str], shown: dict[str, str], hidden: list[str]
) -> None:
    for command in (
        continue_command("a", environ=environ),
        cua_train_command("sql", "rl", database=True, environ=environ),
        cua_project_command(environ=environ),
    ):
        assert variables(command) == shown
        assert "s3cret" not in command
    assert withheld(environ) == hidden


def test_a_run_without_tables_needs_no_database() -> None:
    environ = {"DATABASE_URL": "postgresql://me@db/x"}
    assert variables(continue_command("a", monitor=False, environ=environ)) == {}
    assert variables(cua_train_command("sql", "rl", environ=environ)) == {}
    assert withheld({"DATABASE_URL": "postgresql://a:b@db/x"}, database=False) == []


def test_timeout_and_nice_take_a_printed_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "cua-train"
    own.write_text('#!/bin/sh\necho "$CUA_HOME" "$@"\n', encoding="utf-8")
    own.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(own)])
    printed = continue_command("first", environ={"CUA_HOME": "/my home"})
    words = ["sh", "-c", f"timeout 60 nice {printed}"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout == "/my home run --training-name first\n"
    assert not continue_command("first", environ={}).startswith("env")


def test_a_program_that_only_this_shell_finds_is_printed_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "my env" / "bin" / "cua-train"
    own.parent.mkdir(parents=True)
    own.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(own)])
    monkeypatch.setenv("PATH", str(own.parent))  # an activated virtual environment
    assert shlex.split(program("cua-train")) == [str(own)]
    monkeypatch.setattr(programs, "EVERY_SHELL_PATH", str(own.parent))
    assert program("cua-train") == "cua-train"


def test_a_checkout_without_installed_commands_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "x")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    words = shlex.split(program("cua-project"))
    assert words[-3:] == ["-P", "-m", "consumers"]
