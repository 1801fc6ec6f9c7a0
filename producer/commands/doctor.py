"""`cua-train doctor`: checks that this machine has what a recipe needs before it begins."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import rich_click as click
from pydantic import JsonValue

from producer.commands.convert import command_of
from producer.commands.given_fields import completed_fields, read_config_file
from producer.commands.options import FOLDER, examples, option, with_json
from producer.console import print_table
from producer.errors import CuaTrainError, NotFoundError, UsageError
from producer.foreign_files.convert import Converted
from producer.pretrained.known import made_folder
from schemas.distribution import install_command
from schemas.installation import read_installation

Level = Literal["ok", "warning", "failed"]
PACKAGES = {
    "torch": "train",
    "transformers": "train",
    "peft": "train",
    "sqlglot": "sql",
    "pyarrow": "parquet",
    "pymysql": "mysql",
}
"""Maps a package to the extra that installs it."""


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    level: Level
    found: str
    advice: str = ""


class Recipe(NamedTuple):
    """The parts of a recipe's file that the checks use."""

    kind: str
    model_name: str
    data: Callable[[], str]
    """Loads the data and describes how much there is. Raises CuaTrainError."""
    packages: tuple[str, ...]
    dbbench_database: str | None = None
    environment: str | None = None
    check_output: Callable[[], None] = lambda: None
    """Raises CuaTrainError if an output folder cannot be written to."""


@click.command(
    "doctor",
    epilog=examples(
        "$ cua-train doctor rl_training.yaml                    # Agent-PEFT's assignment",
        "$ cua-train doctor grpo_trainer.yaml --data-path bird  # RewardSQL's",
        "$ cua-train doctor run.toml --json | jq '.checks[] | select(.level != \"ok\")'",
    ),
)
@click.argument("recipe", metavar="FILE", type=click.Path(path_type=Path))
@option("--data-path", "Data set to use instead of the file's, as for `cua-train sql`.", FOLDER)
@with_json
def command(*, recipe: Path, data_path: Path | None, as_json: bool) -> None:
    """Check what a recipe's file needs: its fields, data, policy, packages, database, folders.

    Reads files for `cua-train run` and the recipes' own. Trains and downloads nothing. Exits with 1
    when something failed, with 2 without the file. `cua-project doctor` checks the installation.
    """
    try:
        recipe.open("rb").close()
    except OSError as error:
        message = f"{recipe} cannot be read: {error.strerror}; name a recipe's file"
        raise UsageError(message) from None
    findings = list(_look(recipe, data_path))
    is_ok = all(finding.level != "failed" for finding in findings)
    if as_json:
        checks = [finding._asdict() for finding in findings]
        click.echo(json.dumps({"ok": is_ok, "checks": checks}))
    else:
        print_table(["check", "is", "found", "do"], findings)
    if not is_ok:
        raise SystemExit(CuaTrainError.exit_code)


def _look(file: Path, data_path: Path | None) -> Iterator[Finding]:
    try:
        recipe = _read(file, data_path)
    except CuaTrainError as error:
        yield _failed("recipe", error)
        return
    yield Finding("recipe", "ok", f"{recipe.kind}: every field can be honoured")
    yield from _packages(recipe)
    yield _asked("data", recipe.data)
    yield _policy(recipe.model_name)
    if recipe.environment == "dbbench":
        yield _database(recipe.dbbench_database)
    yield _asked("folders", lambda: recipe.check_output() or "can be written")


def _asked(check: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding(check, "ok", ask())
    except CuaTrainError as error:
        return _failed(check, error)


def _failed(check: str, error: CuaTrainError) -> Finding:
    text = " ".join(str(error).split())
    problem, _, advice = text.partition("; ")
    return Finding(check, "failed", problem, advice or "correct it, then look again")


def _packages(recipe: Recipe) -> Iterator[Finding]:
    missing = [name for name in recipe.packages if find_spec(name) is None]
    for name in missing:
        advice = f"run {install_command(PACKAGES[name])}"
        yield Finding("packages", "failed", f"{name} is not installed", advice)
    if not missing:
        yield Finding("packages", "ok", ", ".join(recipe.packages) or "none are needed")


def _policy(name: str) -> Finding:
    from producer.config import DEMO_POLICY, ORACLE_POLICY

    if name in {DEMO_POLICY, ORACLE_POLICY}:
        return Finding("policy", "ok", f"{name} is built in")
    try:
        made = made_folder(name, read_installation(os.environ).policies_dir)
    except NotFoundError as error:
        return _failed("policy", error)
    folder = made or Path(name).expanduser()
    if folder.is_dir():
        return _policy_folder(folder)
    if name.startswith(("/", ".", "~")):
        return Finding("policy", "failed", f"there is no folder {name}", "name a policy's folder")
    if _is_cached(name):
        return Finding("policy", "ok", f"{name} is downloaded")
    return Finding("policy", "warning", f"{name} is not here yet", "the first run downloads it")


def _policy_folder(folder: Path) -> Finding:
    if (folder / "config.json").is_file() or (folder / "adapter_config.json").is_file():
        return Finding("policy", "ok", f"{folder}")
    return Finding("policy", "failed", f"{folder} has no config.json", "name a policy's folder")


def _is_cached(name: str) -> bool:
    if find_spec("huggingface_hub") is None:
        return False
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:
        return False


def _database(url: str | None) -> Finding:
    from producer.agents.dbbench.agent import PASSWORD
    from producer.agents.dbbench.environment import check_server

    def ask() -> str:
        if url is None:
            return "SQLite in child processes; no server and no Docker are needed"
        check_server(url, os.environ.get(PASSWORD))
        return f"{url} answers"

    return _asked("database", ask)


def _read(path: Path, data_path: Path | None) -> Recipe:
    """Read a recipe's file. Raises UsageError, NotFoundError."""
    file = read_config_file(path)
    command = file.origin.command if file.origin is not None else command_of(path, file.fields)
    kind = f"{file.title} for cua-train {command}"
    if command == "run":
        policy = file.fields.get("model_name")
        given = completed_fields({"model_name": _stand_in(policy)}, file.fields)
        return _run(given, policy, kind)
    if command == "sql rl":
        return _reinforcement(file, kind, data_path)
    return _fine_tuning(file, kind, data_path)


def _stand_in(policy: JsonValue) -> str | None:
    """The policy's name, or a placeholder for a missing folder, which is a finding of its own."""
    if not isinstance(policy, str):
        return None
    is_path = policy.startswith(("/", ".", "~"))
    return "missing" if is_path and not Path(policy).expanduser().is_dir() else policy


def _run(
    given: dict[str, Any], policy: JsonValue, kind: str, output_dir: str | None = None
) -> Recipe:
    from producer.config import ORACLE_POLICY, check_effects, read_config
    from producer.fine_tuning.output import check_planned_output
    from producer.training.loaded import load_run_tasks
    from producer.training.preflight import check_folders

    config = read_config(given)
    check_effects(config, config.explicit)
    installation = read_installation(os.environ)

    def data() -> str:
        loaded = load_run_tasks(config, is_check=True)
        return f"{len(loaded.tasks)} training tasks, {len(loaded.eval_tasks)} evaluation tasks"

    def check_output() -> None:
        check_folders(installation, config)
        if output_dir is not None:
            folder = Path(output_dir).expanduser().absolute()
            check_planned_output(folder, config.training_name, installation, config.run_folder)

    packages = [] if config.model_name == ORACLE_POLICY else ["torch", "transformers", "peft"]
    if config.provider != "in_process":
        packages = ["transformers"]
    if config.environment in {"dbbench", "text_to_sql"}:
        packages.append("sqlglot")
    if config.dbbench_database is not None:
        packages.append("pymysql")
    return Recipe(
        kind=kind,
        model_name=policy if isinstance(policy, str) else config.model_name,
        data=data,
        packages=tuple(packages),
        dbbench_database=config.dbbench_database,
        environment=config.environment,
        check_output=check_output,
    )


def _reinforcement(file: Converted, kind: str, data_path: Path | None) -> Recipe:
    from producer.commands.sql_rl_settings import settings_of

    policy = file.fields.get("model_name")
    flags = {"model_name": _stand_in(policy), "data_path": data_path}
    given = settings_of({k: v for k, v in flags.items() if v is not None}, file)
    return _run(given, policy, kind, file.fields.get("output_dir"))


def _fine_tuning(file: Converted, kind: str, data_path: Path | None) -> Recipe:
    from producer.fine_tuning.examples import load_examples
    from producer.fine_tuning.output import check_planned_output
    from producer.fine_tuning.settings import read_fine_tuning
    from producer.foreign_files.rewardsql_models import objective_of
    from producer.training.preflight import check_writable

    given = dict(file.fields)
    if data_path is not None:
        given["data_path"] = [str(data_path)]
    for name in ("model_name", "data_path"):
        if name not in given:
            message = f"{name}: is missing; name it in the file"
            raise UsageError(message)
    config = read_fine_tuning(objective_of(given), given, names=file.read.names)

    def data() -> str:
        found = load_examples(config)
        return f"{len(found.training)} examples, {len(found.held_out)} held out"

    def check_both() -> None:
        if config.log_path is not None:
            check_writable(config.log_path, "log_path")
        if config.output_dir is not None:
            check_planned_output(
                *(config.output_dir, config.training_name),
                *(read_installation(os.environ), config.log_path),
            )

    return Recipe(
        kind=kind,
        model_name=config.model_name,
        data=data,
        packages=("torch", "transformers", "peft"),
        check_output=check_both,
    )
