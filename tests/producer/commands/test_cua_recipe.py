"""The CUA recipe's commands, tasks and functions, in the spelling of its documents."""

import base64
import io
import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from pydantic import JsonValue

from producer.cli import cli
from producer.commands.flags import from_recipe
from producer.cua_recipe import (
    convert_openai_responses_to_message,
    load_demo_eval_tasks,
    load_demo_training_tasks,
    load_image_from_data_uri,
    load_tasks_by_ids,
    load_tasks_from_file,
)
from producer.errors import UsageError
from producer.tasks.sources import load_tasks
from tests.support.cua_train import CuaTrain
from tests.support.paths import ROOT

RECIPE = ROOT / "tests" / "data" / "recipes" / "cua"
TEXTS = ["Open the Settings app", "Enable WiFi", "Set brightness to maximum"]


def test_the_recipes_command_trains(tmp_path: Path) -> None:
    text = (RECIPE / "train.sh").read_text().replace("\\\n", " ")
    text = text.replace("LOG_PATH", str(tmp_path / "run"))
    program, *words = shlex.split(text, comments=True)
    assert program == "cua-train"
    done = CliRunner().invoke(cli, [*words, "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["steps"], summary["eval_split"], summary["eval_tasks"]) == (1, "held_out", 2)
    assert (tmp_path / "run" / "config.json").is_file()


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        (["--compute_post_kl", "True"], ["--compute-post-kl"]),
        (["--compute_post_kl", "False"], ["--no-compute-post-kl"]),
        (["compute_post_kl=false"], ["--no-compute-post-kl"]),
        (["--compute-post-kl", "--num-steps", "1"], ["--compute-post-kl", "--num-steps", "1"]),
        (["--no-compute-post-kl"], ["--no-compute-post-kl"]),
        (["model_name=oracle", "seed=3"], ["--model-name", "oracle", "--seed", "3"]),
        (["--renderer_name", "qwen3_vl"], ["--renderer-name", "recipe"]),
        (["renderer_name=qwen3_vl_instruct"], ["--renderer-name", "recipe"]),
        (["--renderer-name=qwen"], ["--renderer-name", "qwen"]),
        (["--tasks", '{"a": "b=c"}'], ["--tasks", '{"a": "b=c"}']),
        (["unknown=1", "--json"], ["unknown=1", "--json"]),
    ],
)
def test_the_recipes_spelling_is_ours(written: list[str], ours: list[str]) -> None:
    assert list(from_recipe(written)) == ours


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("--gbox_api_key=K3Y", "coming; today's"),
        ("gbox_api_key=K3Y", "coming; today's"),
        ("tinker_api_key=K3Y", "set TINKER_API_KEY, and provider to tinker"),
    ],
)
def test_a_key_of_a_service_is_refused_by_name_and_not_shown(
    written: str, instead: str, cua_train: CuaTrain
) -> None:
    refused = cua_train("run", written, expected=2)
    assert instead in " ".join(refused.stderr.split())
    assert "K3Y" not in refused.stderr


def test_a_switch_takes_true_or_false_alone() -> None:
    with pytest.raises(UsageError, match="'maybe' is neither True nor False"):
        list(from_recipe(["compute_post_kl=maybe"]))


@pytest.mark.parametrize(
    "source",
    [
        json.loads((RECIPE / "tasks.json").read_text()),
        {"source_type": "file", "file_path": str(RECIPE / "tasks.txt")},
    ],
)
def test_an_instruction_alone_is_judged_by_the_agents_own_report(source: JsonValue) -> None:
    tasks = load_tasks(source)
    assert [task.description for task in tasks] == TEXTS
    assert {task.judge for task in tasks} == {"agent"}


def test_a_task_object_without_a_validator_is_refused_as_before() -> None:
    source: JsonValue = {
        "source_type": "custom",
        "custom_tasks": [{"task_id": "a", "description": "Open it"}],
    }
    with pytest.raises(UsageError, match="these tasks have no validator: a"):
        load_tasks(source)


PNG = "data:image/png;base64,"


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "input_text", "text": "Turn 1"}, {"type": "input_image", "image_url": PNG}],
        [{"type": "text", "text": "Turn 1"}, {"type": "image_url", "image_url": {"url": PNG}}],
        [{"type": "text", "text": "Turn 1"}, {"type": "image_url", "image_url": PNG}],
    ],
)
def test_messages_of_both_apis_become_tinkers(parts: list[dict[str, object]]) -> None:
    assert convert_openai_responses_to_message({"role": "user", "content": parts}) == {
        "role": "user",
        "content": [{"type": "text", "text": "Turn 1"}, {"type": "image", "image": PNG}],
    }


@pytest.mark.parametrize("content", ["Done.", [{"type": "input_text", "text": "Done."}]])
def test_a_message_of_one_text_is_that_text(content: object) -> None:
    message = convert_openai_responses_to_message({"role": "assistant", "content": content})
    assert message == {"role": "assistant", "content": "Done."}
    assert convert_openai_responses_to_message({"content": []}) == {"role": "user", "content": ""}


def test_another_part_of_a_message_is_refused() -> None:
    with pytest.raises(ValueError, match="type 'audio' is neither a text nor an image"):
        convert_openai_responses_to_message({"content": [{"type": "audio"}]})


def test_a_data_uri_is_a_picture() -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(buffer, "PNG")
    picture = load_image_from_data_uri(PNG + base64.b64encode(buffer.getvalue()).decode())
    assert (picture.size, picture.getpixel((0, 0))) == ((3, 2), (255, 0, 0))
    with pytest.raises(ValueError, match="expected a data URI"):
        load_image_from_data_uri("https://example.org/a.png")


def test_tasks_are_loaded_by_the_recipes_functions() -> None:
    assert {task.split for task in load_demo_training_tasks(category="settings")} == {"train"}
    assert len(load_demo_eval_tasks(limit=3, seed=1)) == 3
    assert [task.task_id for task in load_tasks_by_ids(["train_04_open_chrome"])] == [
        "train_04_open_chrome"
    ]
    assert [task.description for task in load_tasks_from_file(RECIPE / "tasks.txt")] == TEXTS
