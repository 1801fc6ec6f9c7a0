"""The CUA recipe's commands, tasks and functions, in the spelling of its documents."""

import base64
import io
import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from pydantic import JsonValue, ValidationError

from producer.cli import cli
from producer.commands.flags import from_recipe
from producer.commands.given_fields import given_fields
from producer.config import RunConfig, read_config, read_fields
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
from producer.training.preflight import unused_keys
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
        (["use_default_eval_tasks=True", "--use_default_eval_tasks", "--json"], ["--json"]),
        (["gbox_api_key=", "--tinker_api_key", ""], []),
        (["--renderer-name=compact"], ["--renderer-name", "compact"]),
        (["--tasks", '{"a": "b=c"}'], ["--tasks", '{"a": "b=c"}']),
        (["--wandb-name", "seed=3", "--json"], ["--wandb-name", "seed=3", "--json"]),
        (
            ["--seed", "1", "--renderer_name", "qwen3_vl", "num_steps=2"],
            ["--seed", "1", "--renderer-name", "recipe", "--num-steps", "2"],
        ),
        (["unknown=1", "--json"], ["unknown=1", "--json"]),
    ],
)
def test_the_recipes_spelling_is_ours(written: list[str], ours: list[str]) -> None:
    assert list(from_recipe(written)) == ours


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("--gbox_api_key=K3Y", "set GBOX_API_KEY, and environment to gbox"),
        ("gbox_api_key=K3Y", "set GBOX_API_KEY, and environment to gbox"),
        ("tinker_api_key=K3Y", "set TINKER_API_KEY, and provider to tinker"),
        ("--provider-api-key=K3Y", "set OPENAI_API_KEY, and base_url"),
    ],
)
def test_a_key_of_a_service_is_refused_by_name_and_not_shown(
    written: str, instead: str, cua_train: CuaTrain
) -> None:
    refused = cua_train("run", written, expected=2)
    assert instead in " ".join(refused.stderr.split())
    assert "K3Y" not in refused.stderr


@pytest.mark.parametrize("name", ["gbox_api_key", "tinker_api_key", "provider_api_key"])
def test_a_key_in_a_file_or_in_python_is_refused_by_name_and_not_shown(
    name: str, cua_train: CuaTrain, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({name: "sk-K3Y"}))
    refused = cua_train("run", "--config", str(file), expected=2)
    with pytest.raises(ValidationError, match=f"{name}: a key is never part") as wrong:
        RunConfig.model_validate({name: "sk-K3Y"})
    assert f"{name}: a key is never part" in refused.stderr
    assert "K3Y" not in refused.stderr + str(wrong.value)


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": "sk-K3Y"},
        {"gbox_api_key": {"key": "sk-K3Y"}},
        {"wandb_project": {"api_key": "sk-K3Y"}},
        {"judge": ["none", {"Secret": "sk-K3Y"}]},
        {"gbox_api_key": "", "group_size": 2, "min_group_size": 3, "hf_token": "sk-K3Y"},
    ],
)
def test_no_message_about_a_configuration_shows_a_key(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as wrong:
        RunConfig.model_validate(given)
    with pytest.raises(UsageError) as refused:
        read_config(given)
    assert "K3Y" not in str(wrong.value) + repr(wrong.value) + str(refused.value)


def test_the_recipes_names_work_in_python_and_in_a_file(tmp_path: Path) -> None:
    given: dict[str, object] = {
        "model_name": "oracle",
        "renderer_name": "qwen3_vl",
        "gbox_api_key": "",
        "tinker_api_key": None,
        "use_default_eval_tasks": True,
    }
    expected = RunConfig(model_name="oracle", renderer_name="recipe")
    assert RunConfig.model_validate(given) == expected
    assert RunConfig.model_validate(given).explicit == {"model_name", "renderer_name"}
    assert read_fields(given)["renderer_name"] == "recipe"
    file = tmp_path / "run.yaml"
    file.write_text("renderer_name: qwen3-vl-instruct\nuse_default_eval_tasks: true\n")
    assert read_config(given_fields({}, file)).renderer_name == "recipe"
    with pytest.raises(UsageError, match="use_default_eval_tasks: a run always has evaluation"):
        read_config({"use_default_eval_tasks": False})


@pytest.mark.parametrize(
    ("given", "environ", "line"),
    [
        ({}, {}, None),
        ({"environment": "gbox"}, {"GBOX_API_KEY": "K3Y"}, None),
        ({}, {"GBOX_API_KEY": ""}, None),
        (
            {},
            {"GBOX_API_KEY": "K3Y"},
            "GBOX_API_KEY is set and not used: this run has the simulated phone"
            " (--environment gbox)",
        ),
        (
            {},
            {"GBOX_API_KEY": "K3Y", "TINKER_API_KEY": "K3Y"},
            "GBOX_API_KEY and TINKER_API_KEY are set and not used: this run has the simulated phone"
            " and the policy in this process (--environment gbox, --provider tinker)",
        ),
    ],
)
def test_a_key_that_is_set_and_not_used_is_told_in_one_line(
    given: dict[str, object], environ: dict[str, str], line: str | None
) -> None:
    assert unused_keys(read_config(given), environ) == line


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
