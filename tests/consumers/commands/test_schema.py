"""`cua-project schema`: what an event's fields are, for whoever reads the log."""

import json

import pytest
from click.testing import CliRunner, Result

from consumers.cli import cli
from consumers.errors import NotFoundError, UsageError
from schemas.catalogue import BY_TYPE
from schemas.json_schemas import read_schema


def schema(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["schema", *arguments])


def test_the_list_has_every_type_and_version_with_its_sentence() -> None:
    listed = json.loads(schema("--json").stdout)
    assert {(item["type"], item["version"]) for item in listed if item["is_current"]} == set(
        BY_TYPE
    )
    old = [item for item in listed if not item["is_current"]]
    assert [(item["type"], item["version"]) for item in old] == [("cua.rollout.turn_taken", 1)]
    lines = schema().stdout.splitlines()
    assert len(lines) == 1 + len(listed)
    assert "cua.step.finished" in "".join(lines)
    assert "The policy was updated and the resume state is on disk." in "".join(lines)


@pytest.mark.parametrize("name", ["cua.step.finished", "step.finished"])
def test_a_type_may_be_named_with_or_without_its_prefix(name: str) -> None:
    assert json.loads(schema(name).stdout) == read_schema("cua.step.finished", 1)
    assert json.loads(schema(name, "--json").stdout) == read_schema("cua.step.finished", 1)
    assert len(schema(name, "--json").stdout.splitlines()) == 1


def test_an_older_version_is_printed_when_it_is_named_and_else_the_newest() -> None:
    name = "rollout.turn_taken"
    assert json.loads(schema(name, "--version", "1").stdout)["$id"].endswith("turn_taken:1")
    assert json.loads(schema(name).stdout)["$id"].endswith("turn_taken:2")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["step.finishd"], NotFoundError, "Did you mean 'step.finished'"),
        (["xyzzy"], NotFoundError, "`cua-project schema` lists the types"),
        (["../json/cua.step.finished"], NotFoundError, "there is no event type '../json"),
        ([""], NotFoundError, "there is no event type ''"),
        (
            ["step.finished", "--version", "2"],
            NotFoundError,
            "has no version 2; its versions are 1",
        ),
        (["--version", "1"], UsageError, "--version needs a type"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(
    arguments: list[str], error: type[Exception], message: str
) -> None:
    done = schema(*arguments)
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert done.stdout == ""
