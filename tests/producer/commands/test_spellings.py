"""Every flag may be written as its field is: `--model_name` is `--model-name`."""

import re

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from rich_click import RichOption

from producer.cli import COMMANDS, cli
from producer.config import RunConfig

RECIPE_NAMES = [
    "model_name",
    "lora_rank",
    "renderer_name",
    "load_checkpoint_path",
    "box_type",
    "max_turns",
    "tasks",
    "eval_tasks",
    "seed",
    "group_size",
    "groups_per_batch",
    "learning_rate",
    "max_tokens",
    "temperature",
    "kl_penalty_coef",
    "num_substeps",
    "log_path",
    "log_dir",
    "eval_every",
    "save_every",
    "behavior_if_log_dir_exists",
    "base_url",
    "max_concurrent_rollouts",
    "max_task_time_seconds",
    "max_turn_time_seconds",
    "skip_baseline",
    "baseline_only",
]
"""The recipe's names for its settings."""


def parsed(name: str, *words: str) -> dict[str, object]:
    with cli.make_context("cua-train", [name], resilient_parsing=True) as parent:
        command = cli.get_command(parent, name)
        assert command is not None
        context = command.make_context(name, list(words), parent=parent)
        return dict(context.params)


def options(name: str) -> list[RichOption]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [one for one in command.params if isinstance(one, RichOption) and one.expose_value]


def value_of(option: RichOption) -> list[str]:
    if option.is_flag:
        return []
    if isinstance(option.type, click.Choice):
        return [str(option.type.choices[-1])]
    return ["1"]


@pytest.mark.parametrize("name", ["run", "evaluate"])
def test_both_spellings_of_every_flag_are_the_same(name: str) -> None:
    for option in options(name):
        for flag in (*option.opts, *option.secondary_opts):
            if "-" not in flag[2:]:
                continue
            underscored, value = "--" + flag[2:].replace("-", "_"), value_of(option)
            expected = parsed(name, flag, *value)
            assert expected != parsed(name)
            assert parsed(name, underscored, *value) == expected
            if value:
                assert parsed(name, f"{underscored}={value[0]}") == expected


def test_of_two_spellings_the_last_wins_as_of_one() -> None:
    given = parsed("run", "--group_size", "2", "--group-size", "3")
    assert given["group_size"] == 3
    assert parsed("run", "--group-size", "3", "--group_size=2")["group_size"] == 2


def test_a_choice_is_what_the_field_takes_however_it_is_written() -> None:
    for written in ("importance_sampling", "importance-sampling"):
        assert parsed("run", "--loss_fn", written)["loss_fn"] == "importance_sampling"


def test_help_and_completion_show_one_spelling() -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(cli, [name, "--help"]).stdout
        assert re.findall(r"--\w+_\w+", shown) == []
    completion = ShellComplete(cli, {}, "cua-train", "_CUA_TRAIN_COMPLETE")
    offered = [item.value for item in completion.get_completions(["run"], "--model")]
    assert offered == ["--model-name"]


def test_every_setting_of_the_recipe_is_a_field_and_a_flag() -> None:
    assert [name for name in RECIPE_NAMES if name not in RunConfig.model_fields] == []
    flags = {option.name for option in options("run")}
    assert [name for name in RECIPE_NAMES if name not in flags] == []
