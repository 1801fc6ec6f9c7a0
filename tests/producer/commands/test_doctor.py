"""`cua-train doctor`: what one recipe needs, looked at before it is begun."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from schemas.installation import read_installation
from tests.support.cua_train import CuaTrain
from tests.support.paths import ROOT

Checks = dict[str, tuple[str, str]]


def write(path: Path, fields: Mapping[str, object]) -> str:
    path.write_text(json.dumps(fields))
    return str(path)


def looked(done: str) -> Checks:
    return {one["check"]: (one["level"], one["found"]) for one in json.loads(done)["checks"]}


def test_a_recipe_that_can_begin_is_ok(tmp_path: Path, cua_train: CuaTrain) -> None:
    file = write(
        tmp_path / "run.json",
        {
            "environment": "dbbench",
            "model_name": "oracle",
            "tasks": {"source_type": "dbbench_generated", "num_samples": 6},
        },
    )
    done = cua_train("doctor", file, "--json")
    checks = looked(done.stdout)
    assert {level for level, _ in checks.values()} == {"ok"}
    assert checks["packages"] == ("ok", "sqlglot")
    assert checks["database"][1].startswith("SQLite in child processes; no server")
    assert checks["policy"] == ("ok", "oracle is built in")
    assert "training tasks" in checks["data"][1]
    assert "training tasks" in cua_train("doctor", file).stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("changed", "check", "found"),
    [
        (
            {"tasks": {"source_type": "dbbench", "path": "nowhere"}},
            "data",
            "no such file or folder",
        ),
        ({"model_name": "/no/policy"}, "policy", "there is no folder /no/policy"),
        ({"group_size": 0}, "recipe", "group_size: 0 is out of range"),
        ({"dbbench_database": "mysql://root@127.0.0.1:1"}, "database", "dbbench_database: "),
        ({"log_path": "/proc/no/folder"}, "folders", "--log-path: "),
    ],
)
def test_what_is_missing_is_named_and_everything_else_is_looked_at(
    changed: dict[str, object], check: str, found: str, tmp_path: Path, cua_train: CuaTrain
) -> None:
    given: dict[str, object] = {
        "environment": "dbbench",
        "model_name": "oracle",
        "tasks": {"source_type": "dbbench_generated", "num_samples": 6},
    }
    done = cua_train("doctor", write(tmp_path / "run.json", given | changed), "--json", expected=1)
    checks = looked(done.stdout)
    level, text = checks[check]
    assert level == "failed"
    assert found in text
    if check != "recipe":
        others = {level for name, (level, _) in checks.items() if name != check}
        assert others == {"ok"}


def test_the_recipes_own_files_are_read(tmp_path: Path, cua_train: CuaTrain) -> None:
    bird = tmp_path / "bird"
    shutil.copytree(ROOT / "tests/data/bird/train", bird)
    recipes = ROOT / "tests/data/recipes/rewardsql"
    words = ("doctor", str(recipes / "grpo_trainer.yaml"), "--data-path", str(bird), "--json")
    checks = looked(cua_train(*words, expected=1).stdout)
    assert checks["recipe"][0] == "ok"
    assert checks["data"][0] == "ok"
    assert checks["policy"] == ("failed", "there is no folder ./checkpoints/cocte_model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    text = (recipes / "grpo_trainer.yaml").read_text()
    foreign = re.sub(r"default_local_dir: .*", f"default_local_dir: {tmp_path / 'other'}", text)
    (tmp_path / "foreign.yaml").write_text(foreign)
    words = ("doctor", str(tmp_path / "foreign.yaml"), "--data-path", str(bird), "--json")
    level, found = looked(cua_train(*words, expected=1).stdout)["folders"]
    assert level == "failed"
    assert "is not empty" in found
    sft = looked(cua_train("doctor", str(recipes / "sft_config.json"), "--json", expected=1).stdout)
    assert sft["recipe"] == (
        "ok",
        "a RewardSQL file for cua-train sql sft: every field can be honoured",
    )
    assert sft["data"][0] == "failed"
    rm = looked(cua_train("doctor", str(recipes / "rm_config.json"), "--json", expected=1).stdout)
    assert "sql reward-model" in rm["recipe"][1]


def test_a_file_that_is_missing_is_a_mistake_of_the_command(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    done = cua_train("doctor", str(tmp_path / "none.yaml"), "--json", expected=2)
    assert "none.yaml cannot be read: No such file or directory; name" in done.stderr
    assert done.stdout == ""


def test_a_pretrained_policy_is_looked_for_by_its_name(tmp_path: Path, cua_train: CuaTrain) -> None:
    recipe = {
        "environment": "dbbench",
        "model_name": "smollm2-135m",
        "tasks": {"source_type": "dbbench_generated", "num_samples": 6},
    }
    file = write(tmp_path / "run.json", recipe)
    tuned = {"model_id_or_path": "smollm2-135m", "dataset": write(tmp_path / "rows.json", {})}
    for given, check in ((file, "recipe"), (write(tmp_path / "sft.json", tuned), "policy")):
        done = cua_train("doctor", given, "--json", expected=1)
        found = {one["check"]: one for one in json.loads(done.stdout)["checks"]}[check]
        assert found["level"] == "failed"
        assert found["found"] == "policy 'smollm2-135m' is not in CUA_HOME yet"
        assert found["advice"] == "`cua-train models get smollm2-135m` fetches it"
    made = read_installation(os.environ).policies_dir / "smollm2-135m"
    made.mkdir(parents=True)
    (made / "config.json").write_text("{}")
    assert looked(cua_train("doctor", file, "--json").stdout)["policy"] == ("ok", str(made))


def test_a_file_of_pairs_is_looked_at_as_pairs_and_its_folders_are_tried(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    rows = [{"prompt": "p", "chosen": "a", "rejected": "b"}] * 4
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    (tmp_path / "file").write_text("")
    fields = {
        "model_name_or_path": str(tmp_path),
        "dataset": str(tmp_path / "pairs.json"),
        "chosen_key": "chosen",
        "rejected_key": "rejected",
        "output_dir": str(tmp_path / "file" / "out"),
    }
    file = tmp_path / "rm.json"
    file.write_text(json.dumps(fields))
    found = looked(cua_train("doctor", str(file), "--json", expected=1).stdout)
    assert found["data"][0] == "ok", found
    assert found["folders"][0] == "failed"
    assert "output_dir: " in found["folders"][1]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    file.write_text(json.dumps({**fields, "output_dir": str(tmp_path / "other")}))
    found = looked(cua_train("doctor", str(file), "--json", expected=1).stdout)
    assert "is not empty" in found["folders"][1]
