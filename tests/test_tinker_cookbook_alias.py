"""The alias package: the CUA recipe's imports, never in the place of a real tinker_cookbook."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.paths import ROOT

ALIAS = ROOT / "compat" / "tinker_cookbook_alias"
INSTALL = (
    f"import sys; sys.path.insert(0, {str(ALIAS)!r});"
    " import cua_train_tinker_cookbook as alias; alias.install(); alias.install()\n"
)
IMPORTS = """
from tinker_cookbook.recipes.cua_rl.database import get_session, get_session_direct, init_database
from tinker_cookbook.recipes.cua_rl.database.database import init_database as later_layout
from tinker_cookbook.recipes.cua_rl.database_dao import (
    get_latest_completed_step, get_step, get_training_by_run_name, list_rollouts_by_step,
)
from tinker_cookbook.recipes.cua_rl.database.database_dao import list_turns_by_rollout
from tinker_cookbook.recipes.cua_rl.train import CLIConfig, cli_main
from tinker_cookbook.recipes.cua_rl.core.train import cli_main as of_later_layout
from tinker_cookbook.recipes.cua_rl.vision_utils import convert_openai_responses_to_message
from tinker_cookbook.recipes.cua_rl.task_loader import load_tasks_from_file
"""


ARGUMENTS = {
    "training_id": "get_training list_steps_by_training get_latest_completed_step"
    " list_baselines_by_training list_evals_by_training",
    "training_id step": "get_step_by_training_and_step get_eval_by_training_and_step",
    "run_name": "get_training_by_run_name",
    "status": "list_trainings",
    "task_id": "get_task get_task_by_task_id list_validators_by_task list_rollouts_by_task",
    "validator_id": "get_validator",
    "step_id": "get_step list_rollouts_by_step list_groups_by_step",
    "eval_id": "get_eval list_rollouts_by_eval list_groups_by_eval",
    "baseline_id": "get_baseline list_rollouts_by_baseline list_groups_by_baseline",
    "group_id": "get_group list_rollouts_by_group",
    "rollout_id": "get_rollout get_rollout_by_rollout_id list_turns_by_rollout"
    " get_validation_by_rollout get_environment_by_rollout",
    "rollout_id turn": "get_turn_by_rollout_and_turn",
    "turn_id": "get_turn list_actions_by_turn list_observations_by_turn",
    "entity_type entity_id limit": "get_status_history",
}
"""Arguments after the session -> the recipe's queries that take them, by name or place."""


def python(code: str, folder: Path, *, before: str = INSTALL) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_recipes_imports_work_and_train(tmp_path: Path) -> None:
    code = f"""{IMPORTS}
import asyncio
config = CLIConfig(model_name="oracle", renderer_name="qwen3_vl", gbox_api_key="", num_steps=1,
    tasks={{"source_type": "demo_training", "limit": 1}}, group_size=2, groups_per_batch=1,
    skip_baseline=True, eval_episodes=1, log_path={str(tmp_path / "run")!r})
print(asyncio.run(cli_main(config)).status)
"""
    done = python(
        f"import os; os.environ['CUA_HOME'] = {str(tmp_path / 'home')!r}\n{code}", tmp_path
    )
    assert done.stdout.split() == ["completed"], done.stderr


def test_the_recipes_queries_take_its_arguments_by_name(tmp_path: Path) -> None:
    asked = {name: given.split() for given, names in ARGUMENTS.items() for name in names.split()}
    code = f"""
import inspect
from tinker_cookbook.recipes.cua_rl import database_dao
for name, given in {asked!r}.items():
    found = [*inspect.signature(getattr(database_dao, name)).parameters]
    assert found[: 1 + len(given)] == ["session", *given], (name, found)
"""
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_writes_to_the_tables_says_what_to_use_instead(tmp_path: Path) -> None:
    done = python(
        "from tinker_cookbook.recipes.cua_rl.database_dao import create_training", tmp_path
    )
    assert "create_training writes to the tables, which are derived" in done.stderr
    assert "from producer import record" in done.stderr


def test_a_real_tinker_cookbook_is_never_shadowed(tmp_path: Path) -> None:
    real = tmp_path / "tinker_cookbook" / "recipes"
    real.mkdir(parents=True)
    (real.parent / "__init__.py").write_text("REAL = True\n")
    (real / "__init__.py").write_text("")
    found = python("import tinker_cookbook; print(tinker_cookbook.REAL)", tmp_path)
    assert found.stdout.split() == ["True"], found.stderr
    missing = python("import tinker_cookbook.recipes.cua_rl", tmp_path)
    assert "No module named 'tinker_cookbook.recipes.cua_rl'" in missing.stderr


def test_the_wheel_brings_the_finder_and_no_package_of_that_name(tmp_path: Path) -> None:
    shutil.copytree(ALIAS, tmp_path / "alias", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path / "alias",
        capture_output=True,
        check=True,
    )
    (wheel,) = (tmp_path / "alias" / "dist").iterdir()
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        pth = content.read("cua_train_tinker_cookbook.pth").decode()
    assert "tinker_cookbook" not in {name.partition("/")[0] for name in names}
    assert "cua_train_tinker_cookbook/tinker_cookbook/recipes/cua_rl/train.py" in names
    installed = python(
        "import tinker_cookbook.recipes.cua_rl.vision_utils",
        tmp_path,
        before=f"import sys; sys.path.insert(0, {str(ALIAS)!r})\n{pth}",
    )
    assert installed.returncode == 0, installed.stderr
