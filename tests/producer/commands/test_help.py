"""`cua-train --help`: quick, complete, and derived from the configuration."""

import re
import shlex
import subprocess
import sys
from typing import Annotated, Literal, get_args

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field
from rich_click import RichOption

from producer.algorithms.controls import BLANK_SCREENS
from producer.cli import COMMANDS, cli
from producer.commands.flags import (
    COMMON,
    JSON_FIELDS,
    METAVARS,
    description_of,
    field_flag,
    shown_default,
)
from producer.config import TOPICS, RunConfig
from producer.fine_tuning.settings import FineTuningConfig

SLOW_TO_IMPORT = {
    *("torch", "transformers", "numpy", "PIL", "kafka", "fsspec", "sqlite3", "asyncio", "http"),
    *("openai", "sqlalchemy", "psycopg2", "alembic"),
    *("rich.progress", "rich.live", "producer.training", "producer.emit", "producer.environments"),
}


def help_of(*words: str, width: int = 100, flag: str = "") -> str:
    environ = {"TERMINAL_WIDTH": str(width), "COLUMNS": str(width)}
    flag = flag or ("--help-all" if words == ("run",) else "--help")
    shown = CliRunner().invoke(cli, [*words, flag], prog_name="cua-train", env=environ)
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def options(name: str) -> list[RichOption]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [option for option in command.params if isinstance(option, RichOption)]


def test_every_field_is_in_one_group_and_every_option_of_run_too() -> None:
    grouped = [name for topic in TOPICS.values() for name in topic.model_fields]
    assert sorted(grouped) == sorted(RunConfig.model_fields)
    assert [option.name for option in options("run") if not option.panel] == []
    shown = help_of("run")
    for title in (*TOPICS, "Output"):
        assert f"{title}:" in shown


def test_the_help_of_run_fits_on_two_screens_and_says_where_the_rest_is() -> None:
    shown = help_of("run", flag="--help")
    assert len(shown.splitlines()) <= 125
    assert "--help-all" in shown
    assert RunConfig.model_fields.keys() >= COMMON
    for option in options("run"):
        is_explained = option.name in COMMON or option.name not in RunConfig.model_fields
        assert (f"  {option.opts[-1]} " in shown) is is_explained, option.name
        assert option.opts[-1] in shown.split(), option.name
    assert "--loss-fn <NAME>" in shown
    assert "One of importance_sampling" in shown
    assert "$ cua-train run --training-name first" in shown


def test_values_have_a_type_and_choices_are_shown() -> None:
    shown = " ".join(help_of("run", width=200).split())
    for words in (
        *("--group-size <INTEGER>", "--learning-rate <FLOAT>", "--log-path <FOLDER>"),
        *("--tasks <FILE|JSON>", "--training-name <NAME>", "--model-name <NAME|FOLDER>"),
        *("--loss-fn <NAME>", "--config <FILE>", "--kl-in <advantage|loss>"),
        "One of importance_sampling, reinforce, ppo, cispo, gspo. [default: importance_sampling]",
        "<ask|resume|overwrite|skip|raise>",
    ):
        assert words in shown
    assert "VALUE" not in shown


class LaterFields(BaseModel):
    """Fields that somebody adds to the configuration, of every type that one may have."""

    plain_text: str = Field("a", description="Text.")
    other_name: str | None = Field(None, description="Text.")
    named_choice: Literal["a", "b"] = Field("a", description="One of two.")
    choice_or_none: Literal["a", "b"] | None = Field(None, description="One of two, or none.")
    numbered_choice: Literal[1, 2] = Field(1, description="One of two.")
    maybe: bool | None = Field(None, description="Yes, no or none.")
    bounded: Annotated[float, Field(ge=0)] | None = Field(None, description="A number.")
    some_names: tuple[str, ...] = Field((), description="Names.")
    some_fields: dict[str, int] = Field({}, description="An object.")


def test_a_field_that_is_added_has_a_flag_whatever_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One without a flag would break every command: each has the flags made when it starts."""
    monkeypatch.setattr("producer.commands.flags.RunConfig", LaterFields)
    found = {}
    for name in LaterFields.model_fields:
        command = click.command()(field_flag(name)(lambda **_given: 0))
        (option,) = [param for param in command.params if isinstance(param, RichOption)]
        found[name] = (option.opts, option.metavar)
    assert found == {
        "plain_text": (["--plain-text"], "TEXT"),
        "other_name": (["--other-name"], "NAME"),
        "named_choice": (["--named-choice"], "a|b"),
        "choice_or_none": (["--choice-or-none"], "a|b"),
        "numbered_choice": (["--numbered-choice"], "1|2"),
        "maybe": (["--maybe"], "MAYBE"),
        "bounded": (["--bounded"], "FLOAT"),
        "some_names": (["--some-names"], "NAMES"),
        "some_fields": (["--some-fields"], "FIELDS"),
    }


@pytest.mark.parametrize("name", ["sft", "reward-model"])
def test_a_flag_of_a_supervised_training_says_what_its_field_says(name: str) -> None:
    sql = cli.get_command(click.Context(cli), "sql")
    assert isinstance(sql, click.Group)
    params = [param for param in sql.commands[name].params if isinstance(param, RichOption)]
    shown = {param.name: param.help or "" for param in params}
    fields = FineTuningConfig.model_fields
    # --seed also sets data_seed, and --skip-invalid is that of every command of `sql`.
    same = (shown.keys() & fields.keys()) - {"seed", "skip_invalid"}
    assert len(same) == {"sft": 14, "reward-model": 14}[name]
    for field in same:
        assert shown[field].startswith(description_of(fields[field]))
    assert shown["learning_rate"] == (
        "Highest learning rate. [default: sft 0.0001, reward-model 9e-06]"
    )
    assert shown["epochs"] == "Passes over the examples. [default: 1]"


def test_every_text_field_names_its_value() -> None:
    """`METAVARS` in producer/commands/flags.py; nothing breaks without, but the help is worse."""
    texts = {
        option.name
        for option in options("run")
        if option.type is click.STRING and option.name not in JSON_FIELDS
    }
    assert texts - METAVARS.keys() == set(), "fields without a word for their value"
    assert METAVARS.keys() - RunConfig.model_fields.keys() == set(), "words of no field"


def test_a_default_is_shown_once_with_the_presets_where_it_differs() -> None:
    assert shown_default("group_size") == "4; demo: 8"
    assert shown_default("eval_every") == "10; demo: 0"
    assert shown_default("learning_rate") == "1e-05; demo: 0.0015"
    assert shown_default("skip_baseline") == "no"
    shown = help_of("run", width=200)
    assert "[default: 4; demo: 8]" in shown
    fields = [option for option in options("run") if option.name in RunConfig.model_fields]
    assert len(fields) == len(RunConfig.model_fields)
    assert all((option.help or "").count("[default: ") == 1 for option in fields)


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_nothing_is_cut_and_no_line_is_wider_than_the_terminal(name: str | None) -> None:
    shown = help_of(*([name] if name else []), width=80)
    assert "..." not in shown.replace("[ARGS]...", "")
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_pair_of_flags_breaks_between_them() -> None:
    shown = help_of("run", width=80).split()
    for option in options("run"):
        assert {*option.opts, *option.secondary_opts} <= {*shown}, option.name


def test_help_ends_with_examples_and_exit_codes() -> None:
    assert "$ cua-train run --training-name first" in help_of()
    assert re.search(r"Exit codes: 0 ok, .* 130 interrupted", help_of(), re.DOTALL)
    assert "$ cua-train run --config run.toml --seed 1" in help_of("run")
    assert "$ cua-train evaluate --training-name first" in help_of("evaluate")


def test_the_examples_are_accepted() -> None:
    tasks = [("tasks", name) for name in ("list", "show", "check")]
    pages = [help_of(*words, width=200) for words in ((), ("run",), ("evaluate",), *tasks)]
    lines = [line for page in pages for line in page.splitlines() if line.startswith("$ ")]
    examples = [shlex.split(line.partition(" | ")[0], comments=True)[1:] for line in lines]
    assert len(examples) >= 13
    for program, name, *arguments in examples:
        command = cli.get_command(click.Context(cli), name)
        assert program == "cua-train"
        assert command is not None
        command.make_context(name, arguments)  # parses, and calls nothing


def test_the_choices_of_a_flag_are_the_fields() -> None:
    for option in options("run"):
        if isinstance(option.type, click.Choice) and option.name in RunConfig.model_fields:
            field = RunConfig.model_fields[option.name]
            more = (BLANK_SCREENS,) if option.name == "control" else ()
            assert tuple(option.type.choices) == (*get_args(field.annotation), *more)


def test_help_imports_nothing_that_is_slow() -> None:
    code = (
        "import sys; from producer.cli import cli\nfor words in ([], ['run'], ['evaluate']):"
        " cli.main([*words, '--help'], standalone_mode=False)\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stderr.split()) & SLOW_TO_IMPORT == set()
