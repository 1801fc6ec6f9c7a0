"""`cua-train trainings` as a person meets it: what it prints, refuses and lists."""

import json
import shlex
from functools import partial

import click
import pytest

from producer.cli import cli
from producer.commands.trainings import command
from producer.training.run import run
from tests.support.cua_train import CuaTrain
from tests.support.small_run import small


@pytest.fixture
def call(cua_train: CuaTrain) -> CuaTrain:
    """`cua-train trainings` with a training `small` in the home."""
    run(small(num_steps=0))
    return partial(cua_train, "trainings")


def test_each_command_changes_its_part_and_the_list_shows_all(call: CuaTrain) -> None:
    assert call("rename", "small", " Première “essai” ").stdout == "small: name: Première “essai”\n"
    call("tag", "small", "good", "a b")
    assert call("tag", "small", "late", "--remove", "good").stdout.endswith("tags: a b, late\n")
    said = json.loads(call("note", "small", "First line.\nSecond.", "--json").stdout)
    assert (said["note"], said["changed"]) == ("First line.\nSecond.", True)
    (row,) = json.loads(call("list", "--json").stdout)
    assert (row["display_name"], row["tags"], row["hidden"]) == (
        "Première “essai”",
        ["a b", "late"],
        False,
    )
    header, line = call("list").stdout.splitlines()
    assert header.split()[:3] == ["training", "name", "tags"]
    assert "First line." in line
    assert "Second." not in line


def test_a_hidden_training_is_listed_on_request_until_it_is_shown_again(call: CuaTrain) -> None:
    assert call("hide", "small").stdout == "small: hidden: yes\n"
    assert call("hide", "small").stdout == "small (unchanged): hidden: yes\n"
    assert json.loads(call("list", "--json").stdout) == []
    assert len(json.loads(call("list", "--all", "--json").stdout)) == 1
    assert call("unhide", "small").stdout == "small: nothing\n"
    assert len(json.loads(call("list", "--json").stdout)) == 1


def test_an_empty_text_takes_it_back(call: CuaTrain) -> None:
    call("rename", "small", "x")
    assert json.loads(call("rename", "small", "", "--json").stdout)["display_name"] is None
    call("note", "small", "x")
    assert json.loads(call("note", "small", " ", "--json").stdout)["note"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("rename", "smal", "x"), 3, "the log has no training 'smal'. Did you mean 'small'?"),
        (("rename", "a/b", "x"), 2, "NAME: 'a/b' contains '/'"),
        (("rename", "small", "two\nlines"), 2, "DISPLAY_NAME: 'two\\nlines' has a line break"),
        (("rename", "small", "x" * 201), 2, "DISPLAY_NAME: 201 characters are too many"),
        (("tag", "small"), 2, "give a tag to add, or --remove TAG"),
        (("tag", "small", "a,b"), 2, "TAG: 'a,b' is not a tag"),
        (("tag", "small", "a", "--remove", "a"), 2, "tag 'a' is both added and removed"),
        (("note", "small", "x" * 10_001), 2, "the note has 10001 characters"),
        (("hide",), 2, "missing argument 'NAME'"),
    ],
)
def test_a_mistake_is_one_message(
    call: CuaTrain, words: tuple[str, ...], code: int, message: str
) -> None:
    done = call(*words, expected=code)
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1


def test_the_examples_of_the_help_are_accepted() -> None:
    assert isinstance(command, click.Group)
    for name, subcommand in command.commands.items():
        lines = (subcommand.epilog or "").splitlines()
        examples = [shlex.split(line, comments=True) for line in lines if line.startswith("$ ")]
        assert examples
        for words in examples:
            assert words[1:4] == ["cua-train", "trainings", name]
            subcommand.make_context(name, words[4:], parent=click.Context(cli))
