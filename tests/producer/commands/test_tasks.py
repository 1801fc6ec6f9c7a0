"""`cua-train tasks` prints text and JSON, and ends with the right exit code."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import run

import pytest
from click.testing import CliRunner
from pydantic import JsonValue

from producer.agents.android.demo_tasks import demo_tasks
from producer.cli import cli
from producer.errors import MismatchError, NotFoundError, UsageError
from producer.tasks.files import tasks_from_file


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
        " 'transformers', 'numpy', 'sqlalchemy', 'openai'} & set(sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "yes" in done.stdout
    assert done.stderr == "", "no progress bar where there is no terminal"


def test_leakage_counts_what_two_sources_share_and_the_check_fails_on_it() -> None:
    found = json.loads(invoke("leakage", "--json"))
    assert (found["tasks"], found["eval_tasks"]) == (80, 20)
    by_measure = {item["of"]: item for item in found["overlaps"]}
    # Of the 20, one has no validator and so no goal that is known.
    assert (by_measure["goal"]["num_eval_tasks"], by_measure["goal"]["num_seen"]) == (19, 15)
    assert "in both" in invoke("leakage")
    result = CliRunner().invoke(cli, ["tasks", "leakage", "--check"])
    assert isinstance(result.exception, MismatchError)
    assert "some of 20 evaluation tasks are in training: 15 by goal" in str(result.exception)


def test_generated_entries_of_two_seeds_share_no_task_instruction_or_gold() -> None:
    source = {"source_type": "dbbench_generated", "num_samples": 44}
    invoke(
        "leakage",
        "--check",
        *("--tasks", json.dumps({**source, "seed": 5, "split": "train"})),
        *("--eval-tasks", json.dumps({**source, "seed": 6, "split": "held_out"})),
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tasks", "{"), "--tasks: '{' is not valid JSON"),
        (("--eval-tasks", '{"source_type": "none"}'), "eval_tasks.source_type"),
    ],
)
def test_a_source_that_cannot_be_read_is_named(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["tasks", "leakage", *words])
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_what_show_prints_of_every_demo_task_can_be_read_as_a_task_of_ones_own(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.json"
    shown = [json.loads(invoke("show", task.task_id, "--json")) for task in demo_tasks()]
    file.write_text(json.dumps(shown))
    assert tasks_from_file(file, "where") == [
        replace(task, source_type="file") for task in demo_tasks()
    ]


SOUND: dict[str, JsonValue] = {
    "task_id": "sound",
    "description": "Turn Wi-Fi on.",
    "validation_query": "wifi_enabled",
    "expected": True,
    "setup": ["settings put global wifi_on 0"],
}
MINE: list[JsonValue] = [
    SOUND,
    {
        "task_id": "solved",
        "description": "Turn Wi-Fi off.",
        "validation_query": "wifi_enabled",
        "expected": True,
        "setup": ["settings put global wifi_on 1"],
    },
    {
        "task_id": "no oracle",
        "description": "Turn the ringer's vibration on.",
        "validation_query": "setting_system/vibrate_when_ringing",
        "expected": "1",
        "setup": ["settings put system vibrate_when_ringing 0"],
    },
    "Open the Settings app",
]


def test_a_file_of_ones_own_is_checked_and_a_task_without_an_oracle_without_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(MINE))
    result = CliRunner().invoke(
        cli, ["tasks", "check", "--seeds", "1", "--tasks", str(file), "--json"]
    )
    assert isinstance(result.exception, MismatchError)
    assert str(result.exception) == "1 of 3 tasks are not sound: solved"
    found = json.loads(result.stdout)
    assert [
        (row["task_id"], row["oracle_successes"], row["idle_successes"], row["sound"])
        for row in found["tasks"]
    ] == [("sound", 1, 0, True), ("solved", 1, 1, False), ("no oracle", None, 0, True)]
    assert len(found["not_judged"]) == 1
    only = ["check", "--seeds", "1", "--tasks", str(file), "--task"]
    assert "none" in invoke(*only, "no oracle")
    result = CliRunner().invoke(cli, ["tasks", *only, "soud"])
    assert "there is no task 'soud'. Did you mean 'sound'?" in str(result.exception)


def test_a_task_of_ones_own_that_cannot_be_set_up_is_named_with_its_file_and_entry(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps([*MINE, {**SOUND, "task_id": "x", "setup": ["turn it on"]}]))
    result = CliRunner().invoke(cli, ["tasks", "check", "--tasks", str(file)])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith(f"tasks.file_path: {file}[4]: set-up of x failed: ")


def test_queries_lists_every_query_with_what_it_answers() -> None:
    rows = {row["query"]: row for row in json.loads(invoke("queries", "--json"))}
    assert rows["wifi_enabled"] == {
        "query": "wifi_enabled",
        "answers": "True or False",
        "commands": ["settings get global wifi_on"],
    }
    assert rows["setting_NAMESPACE/KEY"]["commands"] == ["settings get NAMESPACE KEY"]
    assert {task.validation_query for task in demo_tasks()} - rows.keys() == {
        None,
        "app_running_com.android.chrome",
        "app_installed_test_app",
    }
    assert "media_volume" in invoke("queries")
