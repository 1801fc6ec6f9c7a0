"""`cua-train tasks` prints text and JSON, and ends with the right exit code."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.android.demo_tasks import demo_tasks
from producer.tasks.custom import tasks_from_file
from tests.support.cua_train import CuaTrain
from tests.support.profiles import is_long


@pytest.fixture
def tasks(cua_train: CuaTrain) -> CuaTrain:
    return partial(cua_train, "tasks")


def parsed(call: CuaTrain, *words: str, expected: int = 0) -> Any:
    return json.loads(call(*words, "--json", expected=expected).stdout)


def test_list_has_the_fields_that_scripts_rely_on(tasks: CuaTrain) -> None:
    rows = parsed(tasks, "list")
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


def test_list_and_show_print_text_for_people(tasks: CuaTrain) -> None:
    assert "train_68_create_app_folder" in tasks("list").stdout
    assert "settings put global wifi_on 0" in tasks("show", "train_02_enable_wifi").stdout
    task = parsed(tasks, "show", "train_02_enable_wifi")
    assert task["validation_query"] == "wifi_enabled"


def test_check_reports_a_sound_task(tasks: CuaTrain) -> None:
    found = parsed(tasks, "check", "--seeds", "2", "--task", "train_02_enable_wifi")
    (row,) = found["tasks"]
    assert found["sound"] is True
    assert (row["oracle_successes"], row["idle_successes"], row["num_seeds"]) == (2, 0, 2)
    text = tasks("check", "--seeds", "1", "--task", "train_02_enable_wifi").stdout
    assert "train_02_enable_wifi" in text


ABSENT = '{"source_type": "none"}'


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("show", "enable_wifi"), 3, "Did you mean 'train_02_enable_wifi'?"),
        (("check", "--task", "train_68_create_app_folder"), 4, "train_68_create_app_folder"),
        (("leakage", "--check"), 4, "some of 20 evaluation tasks are in training: 15 by goal"),
        (("leakage", "--tasks", "{"), 2, "--tasks: '{' is neither an existing file nor valid JSON"),
        (("leakage", "--eval-tasks", ABSENT), 2, "eval_tasks.source_type"),
    ],
)
def test_a_mistake_or_a_failed_check_is_named(
    tasks: CuaTrain, words: tuple[str, ...], code: int, message: str
) -> None:
    assert message in tasks(*words, expected=code).stderr


def test_the_command_works_from_outside_and_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from producer.cli import cli;cli.main(['tasks', 'check', '--seeds', '1',"
        " '--task', 'train_01_open_settings'], standalone_mode=False);assert not {'torch',"
        " 'transformers', 'numpy', 'sqlalchemy', 'openai'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "yes" in done.stdout
    assert done.stderr == "", "no progress bar where there is no terminal"


def test_leakage_counts_what_two_sources_share(tasks: CuaTrain) -> None:
    found = parsed(tasks, "leakage")
    assert (found["tasks"], found["eval_tasks"]) == (80, 20)
    by_measure = {item["of"]: item for item in found["overlaps"]}
    # Of the 20, one has no validator and so no goal that is known.
    assert (by_measure["goal"]["num_eval_tasks"], by_measure["goal"]["num_seen"]) == (19, 15)
    assert "in both" in tasks("leakage").stdout


def test_generated_entries_of_two_seeds_share_no_task_instruction_or_gold(
    tasks: CuaTrain,
) -> None:
    source = {"source_type": "dbbench_generated", "num_samples": 44}
    tasks(
        *("leakage", "--check"),
        *("--tasks", json.dumps({**source, "seed": 5, "split": "train"})),
        *("--eval-tasks", json.dumps({**source, "seed": 6, "split": "held_out"})),
    )


def test_default_sources_of_dbbench_share_none_of_what_would_be_recall(tasks: CuaTrain) -> None:
    """A tenth of them, because all take half a minute; HYPOTHESIS_PROFILE=long takes all."""
    defaults = AGENTS["dbbench"].default_tasks(seed=0)
    sizes = (1100, 264) if is_long() else (110, 44)
    words, given = ["leakage", "--environment", "dbbench", "--check"], []
    for name, size in zip(("tasks", "eval_tasks"), sizes, strict=True):
        source = defaults[name]
        assert isinstance(source, dict)
        given += [f"--{name.replace('_', '-')}", json.dumps({**source, "num_samples": size})]
    found = parsed(tasks, *words, *([] if is_long() else given))
    by_measure = {item["of"]: item for item in found["overlaps"]}
    assert (found["tasks"], found["eval_tasks"]) == sizes
    for of in ("task", "instruction", "gold", "target", "combination"):
        assert (by_measure[of]["num_eval_tasks"], by_measure[of]["num_shared"]) == (sizes[1], 0)


def test_the_default_run_is_evaluated_on_no_goal_pair_that_it_trains_on(tasks: CuaTrain) -> None:
    found = parsed(tasks, "leakage", "--environment", "android", "--check")
    seen = {item["of"]: item["num_seen"] for item in found["overlaps"]}
    assert (found["tasks"], found["eval_tasks"]) == (80, 264)
    assert (seen["task"], seen["instruction"], seen["goal"]) == (0, 0, 0)


def test_an_agent_that_is_evaluated_on_its_training_tasks_is_not_advised_to_use_others(
    tasks: CuaTrain,
) -> None:
    """The pages begin each episode in another state."""
    seen = tasks("leakage", "--environment", "miniwob", "--check", expected=4).stderr
    assert (
        "are in training: 12 by task, 12 by instruction; `cua-train run --environment miniwob` is"
        " evaluated on its training tasks, in initial states of unseen seeds; --eval-tasks names"
        " others\n"
    ) in seen
    pages = {"source_type": "miniwob", "split": "train"}
    few = {"source_type": "miniwob", "names": ["click-button"]}
    given = ("--tasks", json.dumps(pages), "--eval-tasks", json.dumps(few))
    words = ("leakage", "--environment", "miniwob", "--check", *given)
    assert "; evaluate on others, or leave their" in tasks(*words, expected=4).stderr


def test_the_pages_that_are_held_out_are_none_of_the_training_pages(tasks: CuaTrain) -> None:
    pages = json.dumps({"source_type": "miniwob", "split": "train"})
    found = parsed(tasks, "leakage", "--environment", "miniwob", "--check", "--tasks", pages)
    assert (found["tasks"], found["eval_tasks"]) == (100, 26)
    assert [item["num_seen"] for item in found["overlaps"]] == [0, 0]


def test_what_show_prints_of_every_demo_task_can_be_read_as_a_task_of_ones_own(
    tmp_path: Path, tasks: CuaTrain
) -> None:
    file = tmp_path / "mine.json"
    shown = [parsed(tasks, "show", task.task_id) for task in demo_tasks()]
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
    tmp_path: Path, tasks: CuaTrain
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(MINE))
    check = ("check", "--seeds", "1", "--tasks", str(file))
    done = tasks(*check, "--json", expected=4)
    assert done.stderr == "error: 1 of 3 tasks are not sound: solved\n"
    found = json.loads(done.stdout)
    assert [
        (row["task_id"], row["oracle_successes"], row["idle_successes"], row["sound"])
        for row in found["tasks"]
    ] == [("sound", 1, 0, True), ("solved", 1, 1, False), ("no oracle", None, 0, True)]
    assert len(found["not_judged"]) == 1
    assert "none" in tasks(*check, "--task", "no oracle").stdout
    unknown = tasks(*check, "--task", "soud", expected=3)
    assert "there is no task 'soud'. Did you mean 'sound'?" in unknown.stderr


def test_a_task_of_ones_own_that_cannot_be_set_up_is_named_with_its_file_and_entry(
    tmp_path: Path, tasks: CuaTrain
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps([*MINE, {**SOUND, "task_id": "x", "setup": ["turn it on"]}]))
    refused = tasks("check", "--tasks", str(file), expected=2).stderr
    assert refused.startswith(f"error: tasks.file_path: {file}[4]: set-up of x failed: ")


def test_queries_lists_every_query_with_what_it_answers(tasks: CuaTrain) -> None:
    rows = {row["query"]: row for row in parsed(tasks, "queries")}
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
    assert "media_volume" in tasks("queries").stdout
