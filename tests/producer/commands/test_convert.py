"""`cua-train convert`: the printed file means to its command what the original means."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.commands.convert import converted_text
from producer.commands.given_fields import given_fields, read_config_file
from producer.commands.sql_rl_settings import settings_of
from producer.config import read_config
from producer.fine_tuning.settings import read_fine_tuning
from producer.foreign_files.rewardsql_models import objective_of
from tests.support.cua_train import CuaTrain
from tests.support.paths import ROOT

pytest.importorskip("torch")

RECIPES = ROOT / "tests" / "data" / "recipes"
ASSIGNMENT = (
    "agent_peft/configs/assignments/experiments/qwen25_7b_instruct/instance/db_bench/instance/"
    "rl_training.yaml"
)
PUBLISHED = {
    ASSIGNMENT: "run",
    "rewardsql/grpo_trainer.yaml": "sql rl",
    "rewardsql/sft_config.json": "sql sft",
    "rewardsql/rm_config.json": "sql reward-model",
}
"""File of a recipe -> the command that takes it."""
TRAINER = "rewardsql/grpo_trainer.yaml"
ENTRY = {
    "instruction": "Who?",
    "table_info": {
        "name": "people",
        "column_info_list": [{"name": "name", "type": "TEXT"}],
        "row_list": [["Ann"]],
    },
    "answer_info": {"direct": [["Ann"]], "md5": None, "sql": "SELECT name FROM people"},
    "skill_list": ["select"],
}


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    write_synthetic(folder, 0, SyntheticSize(2, 1, 2, ("count",)))
    return folder


@pytest.fixture
def work(questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recipes with their policies and data, as the working folder."""
    shutil.copytree(RECIPES, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))
    for name in ("cocte_model", "prm_model"):
        Path("checkpoints", name).mkdir(parents=True)
    trainer = Path(TRAINER)
    text = trainer.read_text()
    trainer.write_text(text.replace("./verl/dataset/full_set/train.parquet", str(questions)))
    Path("DATA").mkdir()
    Path("DATA/single_skill_tasks.json").write_text(json.dumps({"select": [ENTRY] * 3}))
    return Path()


def meaning(path: Path, command: str) -> dict[str, Any]:
    """The configuration that a command reads from a file, and what was given of it."""
    if command == "run":
        given = given_fields({}, path)
        if "log_path" in given:  # the time of the call is in it
            given["log_path"] = given["log_path"].parent
        config = read_config(given)
        return {**config.recorded(), "explicit": config.explicit}
    file = read_config_file(path, command)
    if command == "sql rl":
        config = read_config(settings_of({}, file))
        output = file.fields.get("output_dir")
        return {**config.recorded(), "explicit": config.explicit, "output_dir": output}
    tuned = read_fine_tuning(objective_of(file.fields, command), file.fields)
    return tuned.recorded() | {"explicit": tuned._explicit}


def changed(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


def write_json(name: str, **fields: object) -> Path:
    path = Path(name)
    path.write_text(json.dumps(fields))
    return path


def converted(path: Path) -> Path:
    target = Path("converted.toml")
    target.write_text(converted_text(read_config_file(path)))
    return target


def values(text: str) -> list[str]:
    """The fields of a converted file, without comments."""
    return [line.partition("  # ")[0] for line in text.splitlines() if line[:1] not in {"", "#"}]


def is_same(path: Path, command: str) -> None:
    target = converted(path)
    first, second = target.read_text().splitlines()[:2]
    assert first.startswith(f"# converted from {path.name}, ")
    assert second == f"# use it with: cua-train {command} --config THIS_FILE"
    assert meaning(target, command) == meaning(path, command)
    again = converted_text(read_config_file(target))
    assert values(again) == values(target.read_text())


def test_every_file_of_the_recipes_is_converted_or_a_part_of_one() -> None:
    files = {str(path.relative_to(RECIPES)) for path in RECIPES.rglob("*") if path.is_file()}
    imported = {
        name for name in files if "/components/" in name or name.endswith("/definition.yaml")
    }
    parts = {"cua/tasks.txt", "cua/tasks.json", "cua/train.sh", *imported}
    parts.add(str(Path(ASSIGNMENT).parents[1] / "task.yaml"))
    assert files - parts == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.usefixtures("work")
def test_a_recipes_file_and_the_converted_one_are_the_same_configuration(name: str) -> None:
    is_same(Path(name), PUBLISHED[name])


@pytest.mark.parametrize(
    "change",
    [
        *(
            changed('adv_estimator: "grpo"', f'adv_estimator: "{estimator}"')
            for estimator in ("gae", "prime", "remax", "rloo", "reinforce++", "grpo_passk")
        ),
        changed("enable: False\n  strategy", "enable: True\n  strategy"),
        changed("use_kl_loss: True", "use_kl_loss: False"),
        changed("gamma: 1", "gamma: 1\n  norm_adv_by_std_in_grpo: False\n"),
        changed("warmup_style: constant\n", "warmup_style: cosine\n"),
        changed("lr_warmup_steps_ratio: 0.\n", "lr_warmup_steps_ratio: 0.5\n"),
        changed("path: ./checkpoints/cocte_model\n    external", "path: ./checkpoints/cocte_model\n"
                "    lora_rank: 8\n    target_modules: all-linear\n    external"),
        changed("  train_batch_size: 48", "  train_batch_size: 2\n  seed: 7"),
        changed("total_training_steps: null", "total_training_steps: 9"),
        changed("saves/grpo", "/path/to/save"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("work")
def test_a_changed_trainers_file_and_the_converted_one_are_the_same_configuration(
    change: Callable[[str], str],
) -> None:
    path = Path(TRAINER)
    path.write_text(change(path.read_text()))
    is_same(path, "sql rl")


@pytest.mark.parametrize("algorithm", ["grpo", "ppo", "prime", "dapo"])
@pytest.mark.usefixtures("work")
def test_flags_do_the_same_to_the_file_and_to_the_converted_one(algorithm: str) -> None:
    flags: dict[str, Any] = {"algorithm": algorithm, "groups_per_batch": 2, "epochs": 2}
    found = [
        read_config(settings_of(flags, read_config_file(path, "sql rl", overridden=flags)))
        for path in (Path(TRAINER), converted(Path(TRAINER)))
    ]
    assert found[0].recorded() == found[1].recorded()


@pytest.mark.parametrize(
    ("name", "fields", "command"),
    [
        ("pairs.json", {"model_name_or_path": "m", "dataset": "p.json", "chosen_key": "a",
                        "save_steps": -1}, "sql reward-model"),
        ("run.json", {"model_name": "oracle", "renderer_name": "qwen3_vl", "seed": 3,
                      "gbox_api_key": "", "use_default_eval_tasks": True,
                      "tasks": [{"source_type": "demo_all", "limit": 2}]}, "run"),
        ("run.json", {"model_name": "oracle", "max_recent_turns": "none", "temperature": 1.5,
                      "training_name": "a-b", "seed": 5}, "run"),
        ("rl.json", {"model_name": "checkpoints/cocte_model", "data_path": "QUESTIONS",
                     "algorithm": "rloo", "epochs": 2, "skip_invalid": True}, "sql rl"),
        ("sft.json", {"model_name": "m", "data_path": ["a", "b"], "lora_rank": 4}, "sql sft"),
    ],
)  # fmt: skip
def test_files_of_pairs_and_of_our_own_fields_are_converted_as_well(
    work: Path, questions: Path, name: str, fields: dict[str, Any], command: str
) -> None:
    if "data_path" in fields and fields["data_path"] == "QUESTIONS":
        fields = {**fields, "data_path": str(questions)}
    is_same(write_json(str(work / name), **fields), command)


@pytest.mark.usefixtures("work")
def test_a_field_says_what_it_was_called_and_comments_say_what_was_left_out(
    cua_train: CuaTrain,
) -> None:
    path = Path(TRAINER)
    path.write_text(changed("saves/grpo", "/your/folder\n  colour: blue")(path.read_text()))
    done = cua_train("convert", str(path))
    lines = done.stdout.splitlines()
    assert "learning_rate = 1e-06  # actor_rollout_ref.actor.optim.lr" in lines
    assert "gae_gamma = 1.0  # algorithm.gamma, only with advantage gae" in lines
    adapter = "actor_rollout_ref.model.lora_rank, the default of the original, not in the file"
    assert f'train_type = "full"  # {adapter}' in lines
    decay = "actor_rollout_ref.actor.optim.weight_decay"
    default = f"weight_decay = 0.01  # {decay}, the default of the original, not in the file"
    assert default in lines
    assert "# unknown fields, left out: trainer.colour" in lines
    text = " ".join(line.removeprefix("#").strip() for line in lines)
    assert "'/your/folder' is a placeholder, ignored; name a folder of your own" in text
    assert (
        "trainer.nnodes, trainer.n_gpus_per_node (reason: one process computes on one device"
        in text
    )
    assert tomllib.loads(done.stdout)["groups_per_batch"] == 48
    assert "unknown fields, ignored: trainer.colour" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "left_out"),
    [
        (
            "trainer.yaml",
            "OPENAI_API_KEY: sk-K3Y\nalgorithm: {adv_estimator: grpo}\n"
            "trainer: {wandb_api_key: sk-K3Y, total_epochs: 1}",
            ["OPENAI_API_KEY", "trainer.wandb_api_key"],
        ),
        (
            "sft.json",
            '{"model_id_or_path": "m", "dataset": "d", "hub_token": "sk-K3Y"}',
            ["hub_token"],
        ),
        ("run.json", '{"gbox_api_key": "sk-K3Y", "seed": 1}', ["gbox_api_key"]),
        ("run.json", '{"tinker_api_key": {"a": "sk-K3Y"}, "seed": 1}', ["tinker_api_key"]),
        ("run.toml", 'seed = 1\nOPENAI_API_KEY = "sk-K3Y"', ["OPENAI_API_KEY"]),
        (
            "run.yaml",
            "tasks: [{source_type: demo_all, auth: {password: sk-K3Y}}]",
            ["tasks[0].auth.password"],
        ),
        (
            "run.json",
            '{"tasks": [{"source_type": "demo_all", "apiKey": "sk-K3Y", "a": {"Authorization":'
            ' "Bearer K3Y", "x-api-key": "K3Y"}}]}',
            ["tasks[0].apiKey", "tasks[0].a.Authorization", "tasks[0].a.x-api-key"],
        ),
        (
            "run.json",
            '{"model_name": "https://me:p/K3Y@hub.example/m", "seed": 1}',
            ["model_name"],
        ),
        (
            "run.json",
            '{"environment": "dbbench", "dbbench_database": "mysql://me:sk-K3Y@host:1"}',
            ["dbbench_database"],
        ),
    ],
)
def test_a_secret_is_left_out_named_and_never_shown(
    cua_train: CuaTrain, tmp_path: Path, name: str, text: str, left_out: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    done = cua_train("convert", str(path))
    assert "K3Y" not in done.stdout + done.stderr
    comments = [line for line in done.stdout.splitlines() if line.startswith("# ")]
    for field in left_out:
        assert any(line.startswith(f"# {field}: ") and "left out: " in line for line in comments)
    assert tomllib.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.yaml", None, "cannot be read: No such file"),
        ("a.yaml", "a: [1\n", "is not valid YAML: line 2 column 1: "),
        ("a.yaml", "", "must hold an object of fields"),
        ("a.json", "", "is not valid JSON, line 1 column 1"),
        ("a.toml", "", "has no fields; expected fields of `cua-train run`"),
        ("a.json", "{}", "has no fields; expected fields of `cua-train run`"),
        ("a.json", '{"colour": 1, "shape": 2}', "unknown fields: colour, shape. Expected fields"),
        ("a.json", '{"lr": 1, "seed": 2}', "unknown fields: lr. Did you mean 'learning_rate'?"),
        ("a.json", '{"learning_rate": "fast"}', 'learning_rate: "fast" is not a number'),
        ("a.json", '{"tasks": {"limit": null}}', "tasks contains null, which TOML cannot express"),
        ("a.json", '{"use_default_eval_tasks": false}', "use_default_eval_tasks: a run always"),
        ("a.json", '{"dataset": "d", "num_train_epochs": 0}', "num_train_epochs: 0 is out of"),
        ("a.yaml", "trainer: {total_epochs: x}", 'trainer.total_epochs: "x" is not an integer'),
        (
            "a.yaml",
            "actor_rollout_ref: {rollout: {top_k: 5, do_sample: false}}",
            "a.yaml has values that cannot be honoured; change or remove these fields:\n"
            "  actor_rollout_ref.rollout.top_k: 5 cannot be honoured",
        ),
        ("a.yaml", "assignment_config: {task: os}", "assignment_config.task: 'os' cannot be"),
        ("a.yaml", "assignment_config: {}\nimport: [b.yaml]", "b.yaml does not exist"),
    ],
)
def test_a_file_that_cannot_be_converted_is_one_message_and_nothing_is_printed(
    cua_train: CuaTrain, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    done = cua_train("convert", str(path), expected=2)
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stdout == ""


def test_a_folder_is_refused(cua_train: CuaTrain, tmp_path: Path) -> None:
    done = cua_train("convert", str(tmp_path), expected=2)
    assert done.stderr == f"error: {tmp_path} cannot be read: Is a directory\n"


@pytest.mark.parametrize(
    "text",
    ['{"seed": 3}', "seed = 3\n", "seed: 3\n"],
    ids=["json", "toml", "yaml"],
)
def test_a_pipe_is_read_by_its_content(tmp_path: Path, text: str) -> None:
    command = [sys.executable, "-m", "producer", "convert", "/dev/stdin"]
    environ = {**os.environ, "CUA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout) == {"seed": 3}


@pytest.mark.usefixtures("work")
def test_a_pipes_imports_are_relative_to_the_working_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = Path(ASSIGNMENT).read_text()
    monkeypatch.chdir(Path(ASSIGNMENT).parent)
    Path("DATA").symlink_to(Path(*[".."] * 8, "DATA"))
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    fields = read_config_file(Path(f"/dev/fd/{read}")).fields
    os.close(read)
    assert (fields["environment"], fields["num_steps"]) == ("dbbench", 3)


@pytest.mark.parametrize(
    ("words", "name", "message"),
    [
        (("run",), TRAINER, "is a verl trainer file; use `cua-train sql rl --config"),
        (("evaluate",), TRAINER, "is a verl trainer file; use `cua-train sql rl --config"),
        (
            ("run",),
            "rewardsql/sft_config.json",
            "is a RewardSQL file; use `cua-train sql sft --config",
        ),
        (("sql", "rl"), ASSIGNMENT, "is an Agent-PEFT assignment; use `cua-train run --config"),
        (("sql", "rl"), "rewardsql/rm_config.json", "use `cua-train sql reward-model --config"),
        (("sql", "sft"), TRAINER, "is a verl trainer file; use `cua-train sql rl --config"),
    ],
)
@pytest.mark.usefixtures("work")
def test_a_file_for_another_command_is_refused_with_that_command(
    cua_train: CuaTrain, words: tuple[str, ...], name: str, message: str
) -> None:
    assert message in cua_train(*words, "--config", name, expected=2).stderr


def test_doctor_says_which_command_a_converted_file_is_for(work: Path, cua_train: CuaTrain) -> None:
    for name, command in PUBLISHED.items():
        target = converted(work / name)
        # The policy of the assignment may still be downloaded; the data of the others are missing.
        code = 0 if command == "run" else 1
        done = json.loads(cua_train("doctor", str(target), "--json", expected=code).stdout)
        found = f"a configuration for cua-train {command}: every field can be honoured"
        assert done["checks"][0]["found"] == found


def test_a_file_that_may_be_a_reward_models_says_how_to_tell(
    cua_train: CuaTrain, tmp_path: Path
) -> None:
    fields = {"model_id_or_path": "m", "dataset": "d", "max_epochs": 2, "train_batch_size": 4}
    path = tmp_path / "rm.json"
    path.write_text(json.dumps(fields))
    assert "For a reward model add input_key" in cua_train("convert", str(path)).stderr
    path.write_text(json.dumps(fields | {"input_key": "x", "label_key": "y"}))
    done = cua_train("convert", str(path))
    assert "use it with: cua-train sql reward-model" in done.stdout
    assert "does not say what it trains" not in done.stderr
