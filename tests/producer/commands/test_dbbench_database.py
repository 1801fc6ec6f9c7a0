"""--dbbench-database: what is recorded of it, and what is refused before anything starts."""

import os

import pytest
from pydantic import ValidationError

from producer.agents.dbbench.environment import check_server, open_on_server
from producer.commands.given_fields import given_fields
from producer.commands.shell import withheld
from producer.config import RunConfig
from producer.errors import UnreachableError, UsageError

VARIABLE = "CUA_DBBENCH_PASSWORD"  # its name
URL = "mysql://root:p%40ss@127.0.0.1:9"


def test_a_password_is_taken_out_of_the_url_into_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "another")
    given = given_fields({"dbbench_database": URL, "environment": "dbbench"}, None)
    assert given["dbbench_database"] == "mysql://root@127.0.0.1:9"
    assert os.environ[VARIABLE] == "p@ss"
    assert "p@ss" not in RunConfig(**given).model_dump_json()


def test_a_url_without_a_password_leaves_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "mine")
    url = "mysql://root@127.0.0.1:9"
    assert given_fields({"dbbench_database": url}, None) == {"dbbench_database": url}
    assert os.environ[VARIABLE] == "mine"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"dbbench_database": "mysql://root@h"}, "only for environment dbbench"),
        ({"dbbench_database": URL, "environment": "dbbench"}, "must not contain a password"),
        ({"dbbench_database": "sqlite:///x", "environment": "dbbench"}, "mysql://USER@HOST:PORT"),
    ],
)
def test_what_would_do_nothing_or_be_recorded_is_refused(
    fields: dict[str, str], reason: str
) -> None:
    with pytest.raises((ValidationError, UsageError), match=reason):
        RunConfig(**fields)


def test_a_server_that_is_not_there_is_named_and_the_missing_password_too() -> None:
    with pytest.raises(UnreachableError) as raised:
        check_server("mysql://root@127.0.0.1:9")
    assert "mysql://root@127.0.0.1:9 cannot be reached" in str(raised.value)
    assert "CUA_DBBENCH_PASSWORD" in str(raised.value)


def test_a_wrong_url_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="dbbench_database: a server's URL"):
        open_on_server("mysql://nowhere")


def test_a_printed_command_says_which_variable_it_needs() -> None:
    assert "CUA_DBBENCH_PASSWORD" in withheld({"CUA_DBBENCH_PASSWORD": "x"}, database=False)
