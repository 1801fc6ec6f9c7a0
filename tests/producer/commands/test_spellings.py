"""Every flag may be written as its field is: `--model_name` is `--model-name`."""

import re
from typing import get_args

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from rich_click import RichOption

from producer.cli import COMMANDS, cli
from producer.config import RunConfig, read_config
from producer.errors import UsageError
from tests.support.cua_train import CuaTrain

RECIPE_DEFAULTS: dict[str, object] = {
    "model_name": "Qwen/Qwen3-VL-30B-A3B-Instruct",
    "lora_rank": 32,
    "renderer_name": "auto",
    "load_checkpoint_path": None,
    "box_type": "android",
    "max_turns": 20,
    "tasks": None,
    "eval_tasks": None,
    "seed": 0,
    "group_size": 4,
    "groups_per_batch": 10,
    "learning_rate": 1e-5,
    "max_tokens": 2048,
    "temperature": 1.0,
    "kl_penalty_coef": 0.0,
    "num_substeps": 1,
    "log_path": None,
    "log_dir": None,
    "wandb_project": None,
    "wandb_name": None,
    "eval_every": 10,
    "save_every": 10,
    "num_groups_to_log": 1,
    "compute_post_kl": False,
    "max_steps_off_policy": None,
    "behavior_if_log_dir_exists": "ask",
    "base_url": None,
    "max_concurrent_rollouts": 8,
    "max_task_time_seconds": 1800.0,
    "max_turn_time_seconds": 300.0,
    "max_recent_turns": 5,
    "skip_baseline": False,
    "baseline_only": False,
}
"""The recipe's settings and their defaults, in force with a `model_name` other than the demo's."""
RECIPE_CHOICES = {
    "box_type": {"android", "linux"},
    "behavior_if_log_dir_exists": {"ask", "resume", "overwrite", "skip", "raise"},
}


def parsed(name: str, *words: str) -> dict[str, object]:
    with cli.make_context("cua-train", [name], resilient_parsing=True) as parent:
        command = cli.get_command(parent, name)
        assert command is not None
        context = command.make_context(name, list(words), parent=parent)
        return dict(context.params)


def options(name: str) -> list[RichOption]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [
        param for param in command.params if isinstance(param, RichOption) and param.expose_value
    ]


def value_of(option: RichOption) -> list[str]:
    if option.is_flag:
        return []
    if isinstance(option.type, click.Choice):
        return [str(option.type.choices[-1])]
    return ["1"]


@pytest.mark.parametrize("name", ["run", "evaluate"])
def test_both_spellings_of_every_flag_are_the_same(name: str) -> None:
    nothing = parsed(name)
    for option in options(name):
        for flag in (*option.opts, *option.secondary_opts):
            if "-" not in flag[2:]:
                continue
            underscored, value = "--" + flag[2:].replace("-", "_"), value_of(option)
            expected = parsed(name, flag, *value)
            assert expected != nothing
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


def test_a_linux_desktop_is_named_by_either_word_and_recorded_by_one() -> None:
    for name in ("run", "evaluate"):
        assert parsed(name, "--environment", "linux")["environment"] == "desktop"
    given = {"environment": "linux", "model_name": "oracle"}
    assert read_config(given) == read_config({**given, "environment": "desktop"})
    assert read_config(given).recorded()["environment"] == "desktop"


def test_the_word_none_is_told_from_a_flag_that_is_not_given(cua_train: CuaTrain) -> None:
    assert parsed("run")["max_recent_turns"] is None
    assert parsed("run", "--max-recent-turns", "none")["max_recent_turns"] == "none"
    assert parsed("run", "--max_recent_turns=7")["max_recent_turns"] == 7
    refused = cua_train("run", "--max-recent-turns", "all", expected=2)
    assert "'all' is neither an integer nor none" in refused.stderr


def test_help_and_completion_show_one_spelling() -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(cli, [name, "--help"]).stdout
        assert re.findall(r"--\w+_\w+", shown) == []
    completion = ShellComplete(cli, {}, "cua-train", "_CUA_TRAIN_COMPLETE")
    offered = [item.value for item in completion.get_completions(["run"], "--model")]
    assert offered == ["--model-name"]


def test_every_setting_of_the_recipe_is_a_flag() -> None:
    flags = {option.name for option in options("run")}
    assert [name for name in RECIPE_DEFAULTS if name not in flags] == []


def test_every_setting_of_the_recipe_has_the_recipes_default() -> None:
    fields = RunConfig.model_fields
    assert {name: fields[name].default for name in RECIPE_DEFAULTS} == RECIPE_DEFAULTS
    tasks = {"source_type": "demo_training"}
    config = read_config({"model_name": RECIPE_DEFAULTS["model_name"], "tasks": tasks})
    used = {name: getattr(config, name) for name in RECIPE_DEFAULTS}
    # The recipe evaluates on the training tasks; we use the held-out split where there is one.
    assert used == {
        **RECIPE_DEFAULTS,
        "tasks": tasks,
        "eval_tasks": {"source_type": "demo_eval"},
    }


def test_the_recipes_policy_has_no_default_tasks() -> None:
    with pytest.raises(UsageError, match=r"tasks: .* has no default tasks"):
        read_config({"model_name": RECIPE_DEFAULTS["model_name"]})


def test_every_choice_of_the_recipe_is_one() -> None:
    for name, choices in RECIPE_CHOICES.items():
        assert set(get_args(RunConfig.model_fields[name].annotation)) == choices
