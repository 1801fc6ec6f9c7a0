"""`cua-train tasks` prints text and JSON, and ends with the right exit code."""

import json
import sys
from subprocess import run

from click.testing import CliRunner

from producer.cli import cli
from producer.errors import MismatchError, NotFoundError


def invoke(*words: str) -> str:
    result = CliRunner().invoke(cli, ["tasks", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_has_the_fields_that_scripts_rely_on() -> None:
    rows = json.loads(invoke("list", "--json"))
    assert len(rows) == 100
    assert {"task_id", "name", "difficulty", "category", "max_steps", "split", "judged"} <= set(
        rows[0]
    )
    assert (rows[0]["task_id"], rows[0]["max_steps"], rows[0]["split"], rows[0]["judged"]) == (
        "train_01_open_settings",
        5,
        "train",
        True,
    )
    leaking = [row["task_id"] for row in rows if row["same_goal_as"]]
    assert "eval_05_enable_dark_theme" in leaking
    assert all(row["split"] == "eval" for row in rows if row["same_goal_as"])


def test_list_and_show_print_text_for_people() -> None:
    assert "train_68_create_app_folder" in invoke("list")
    assert "settings put global wifi_on 0" in invoke("show", "train_02_enable_wifi")
    assert (
        json.loads(invoke("show", "train_02_enable_wifi", "--json"))["validation_query"]
        == "wifi_enabled"
    )


def test_check_reports_a_sound_task() -> None:
    found = json.loads(invoke("check", "--seeds", "2", "--task", "train_02_enable_wifi", "--json"))
    (row,) = found["tasks"]
    assert found["sound"] is True
    assert (row["oracle_successes"], row["idle_successes"], row["num_seeds"]) == (2, 0, 2)
    assert "train_02_enable_wifi" in invoke(
        "check", "--seeds", "1", "--task", "train_02_enable_wifi"
    )


def test_an_unknown_task_is_not_found_and_one_without_a_validator_fails_the_check() -> None:
    result = CliRunner().invoke(cli, ["tasks", "show", "enable_wifi"])
    assert isinstance(result.exception, NotFoundError)
    assert "Did you mean 'train_02_enable_wifi'?" in str(result.exception)
    result = CliRunner().invoke(cli, ["tasks", "check", "--task", "train_68_create_app_folder"])
    assert isinstance(result.exception, MismatchError)
    assert result.exception.exit_code == 4
    assert "train_68_create_app_folder" in str(result.exception)


def test_the_command_works_from_outside_and_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from producer.cli import cli;cli.main(['tasks', 'check', '--seeds', '1',"
        " '--task', 'train_01_open_settings'], standalone_mode=False);assert not {'torch',"
        " 'transformers', 'numpy', 'sqlalchemy'} & set(sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "yes" in done.stdout
    assert done.stderr == "", "no progress bar where there is no terminal"
