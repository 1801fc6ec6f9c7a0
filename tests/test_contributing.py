"""Whoever adds an event, a task, an environment or a command is told which place was forgotten.

CONTRIBUTING.md describes these places in words; PLACES names the files, and both must agree.
Add a class to `schemas/` or a row to `demo_tasks.tsv` and run this file: it lists what is missing.
"""

import ast
import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from consumers.cli import COMMANDS as PROJECT_COMMANDS
from consumers.fold.projectors.registry import HOMES, PROJECTORS
from producer.agents import AGENTS
from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action
from producer.cli import COMMANDS as TRAIN_COMMANDS
from producer.config import RunConfig
from producer.environments.wrapper import BlankedEnvironment
from producer.task import Task
from schemas.base import Payload
from schemas.catalogue import PAYLOADS, TOPICS
from schemas.decision import DECISIONS
from schemas.upcasting import UPCASTERS
from tests.producer.environments.test_environment_contract import (
    DATABASES,
    DEVICES,
    ENVIRONMENTS,
    PAGES,
    QUESTIONS,
    SERVED,
)
from tests.reference_fold.histories import history
from tests.reference_fold.reference_rows import ROWS
from tests.reference_fold.reference_states import STATUSES
from tests.support.paths import GOLDEN_EVENTS, ROOT

PLACES: dict[str, tuple[str, ...]] = {
    "event": (
        "schemas/catalogue.py",
        "consumers/fold/projectors/registry.py",
        "tests/data/events",
        "tests/reference_fold/reference_rows.py",
        "tests/reference_fold/reference_states.py",
        "tests/reference_fold/histories.py",
    ),
    "task": (
        "producer/agents/android/demo_tasks.tsv",
        "producer/agents/android/queries.py",
        "producer/agents/android/sim/oracle/oracles.py",
    ),
    "environment": (
        "producer/agents/agent.py",
        "producer/agents/__init__.py",
        "tests/producer/environments/test_environment_contract.py",
    ),
    "command": ("producer/cli.py", "consumers/cli.py", "README.md"),
}
"""What is added -> the places it needs."""
WITHOUT_A_VALIDATOR = {
    "train_66_pin_app_to_home",
    "train_67_move_icon_between_pages",
    "train_68_create_app_folder",
    "train_69_rename_folder",
    "train_70_change_wallpaper_settings",
    "train_71_change_wallpaper_home",
    "eval_11_change_wallpaper",
}
"""Tasks that ask for what no shell command reports: listed, never trained on."""


def by_type(payload: type[Payload]) -> str:
    return payload.TYPE


def defined_payloads() -> list[type[Payload]]:
    """Payload classes of the modules of schemas that are imported, in the catalogue or not."""

    def below(base: type[Payload]) -> Iterator[type[Payload]]:
        for each in base.__subclasses__():
            if each.__module__.startswith("schemas."):
                yield from [each] * ("TYPE" in vars(each))
                yield from below(each)

    return sorted(below(Payload), key=by_type)


def modules(folder: str) -> Iterator[ModuleType]:
    """The modules directly in a package of ours."""
    for path in sorted((ROOT / folder).glob("*.py")):
        yield import_module(".".join((*Path(folder).parts, path.stem)))


@pytest.fixture(scope="module")
def types_in_histories() -> set[str]:
    said = [event for seed in range(20) for event in history(f"run-{seed}", seed)]
    return {json.loads(item.value)["type"] for item in said}


def test_every_module_of_events_is_imported_by_the_catalogue() -> None:
    list(modules("schemas"))
    forgotten = {payload.__module__ for payload in {*defined_payloads()} - {*PAYLOADS}}
    assert forgotten == set(), "their classes are missing in schemas/catalogue.py"


@pytest.mark.parametrize("payload", defined_payloads(), ids=by_type)
def test_an_event_is_in_every_place_that_an_event_needs(
    payload: type[Payload], types_in_histories: set[str]
) -> None:
    kind, versions = payload.TYPE, range(1, payload.VERSION + 1)
    golden = [f"{kind}.v{version}.json" for version in versions]
    places = {
        "PAYLOADS in schemas/catalogue.py": payload in PAYLOADS,
        f"tests/data/events: {', '.join(golden)}": all(
            (GOLDEN_EVENTS / name).is_file() for name in golden
        ),
        "UPCASTERS in schemas/upcasting.py for every older version": all(
            (kind, version) in UPCASTERS for version in versions[:-1]
        ),
    }
    in_tables = {
        "PROJECTORS in consumers/fold/projectors/registry.py": payload in PROJECTORS,
        "HOMES in consumers/fold/projectors/registry.py": HOMES.get(payload, {""}) <= set(TOPICS),
        "ROWS in tests/reference_fold/reference_rows.py": kind in ROWS,
        "STATUSES in tests/reference_fold/reference_states.py": (
            payload.STATUS is None or STATUSES.get(kind) == payload.STATUS
        ),
        "a history of tests/reference_fold/histories.py that emits it": kind in types_in_histories,
    }
    if payload not in DECISIONS:  # they change streams, not rows
        places |= in_tables
    missing = [place for place, is_there in places.items() if not is_there]
    assert not missing, f"{payload.__name__} is missing in:\n" + "\n".join(missing)


@pytest.mark.parametrize("task", demo_tasks(), ids=lambda task: task.task_id)
def test_a_demo_task_has_its_texts_a_validator_and_an_oracle(task: Task) -> None:
    assert task.name.strip()
    assert len(task.description.split()) > 2, "the instruction that the agent reads"
    assert task.description.endswith((".", "?", "!"))
    assert task.category
    if task.task_id in WITHOUT_A_VALIDATOR:
        assert not task.is_judged, "judged now: take it off the list"
        return
    assert task.is_judged, "QUERIES in producer/agents/android/queries.py does not know its query"
    assert task.expected_result
    sim = AndroidSim()
    sim.open(task, seed=0)
    text, action = oracle_action(task, sim)
    sim.close()
    assert text
    assert action.type != "terminate", "solved before the first action"


def test_every_environment_keeps_the_contract_and_can_be_chosen() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {node.name}"
        for folder in ("producer/environments", "producer/agents")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and {"open", "act", "close"}
        <= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    } - {
        "producer/environments/environment.py: Environment",
        "producer/environments/wrapper.py: EnvironmentWrapper",
    }
    tested = {place_of(type(make())) for make in ENVIRONMENTS.values()}
    tested |= {place_of(type(make(Path()))) for make in QUESTIONS.values()}
    tested |= {place_of(type(make("ws://127.0.0.1:9"))) for make in SERVED.values()}
    tested -= {place_of(BlankedEnvironment)}
    assert found == tested, "ENVIRONMENTS in test_environment_contract.py has them all"
    choices = get_args(RunConfig.model_fields["environment"].annotation)
    assert {make().box_type for make in DEVICES.values()} <= set(choices)
    assert {make().env_type for make in (DATABASES | PAGES).values()} <= set(choices)
    assert set(SERVED) <= set(choices)


def names_agents(path: Path) -> set[str]:
    """Agents that a module names in a text or an import."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in AGENTS:
            found.add(str(node.value))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("producer.agents."):
            found |= {*str(node.module).split(".")} & {*AGENTS}
    return found


NAMES_ITS_AGENT = {
    "producer/foreign_files/agent_peft.py": "reads the files of DB Bench's trainer",
    "producer/commands/doctor.py": "`cua-train doctor` checks what the recipes of SQL agents need",
    "producer/training/preflight.py": "GBox's key is of use on other devices than the simulator",
    "producer/commands/data.py": "`cua-train data` makes entries of DB Bench",
    "producer/commands/sql.py": "`cua-train sql` is about text-to-SQL",
    "producer/commands/sql_rl_settings.py": "the same",
    "producer/commands/tasks.py": "`cua-train tasks` lists the phone's demo tasks",
    "producer/commands/tasks_sheet.py": "`cua-train tasks sheet` draws the simulated phone",
    "producer/config/tasks.py": "a type of device, `box_type`, has the name of its agent",
    "producer/fine_tuning": "the training stages of `cua-train sql`",
    "producer/tasks/custom.py": "a custom task's `validation_query` is one of the phone's",
    "producer/tasks/database.py": "the same of a recorded task",
    "producer/training/own_rewards.py": "rewards of steps are computed from executed SQL",
    "producer/training/rubric.py": "the same",
}
"""Modules and rooms that are about one agent -> why."""


def test_outside_of_its_folder_nothing_names_an_agent() -> None:
    rooms = [path for path in (ROOT / "producer").rglob("*.py") if "/agents/" not in str(path)]
    found = {path.relative_to(ROOT) for path in rooms if names_agents(path)}
    others = {path for path in found if not {str(path), str(path.parent)} & {*NAMES_ITS_AGENT}}
    assert sorted(map(str, others)) == []


def place_of(kind: type) -> str:
    return f"{Path(inspect.getfile(kind)).relative_to(ROOT)}: {kind.__name__}"


@pytest.mark.parametrize(
    ("package", "commands"), [("producer", TRAIN_COMMANDS), ("consumers", PROJECT_COMMANDS)]
)
def test_every_command_module_is_listed_in_its_cli(package: str, commands: dict[str, str]) -> None:
    written = {
        module.__name__ for module in modules(f"{package}/commands") if hasattr(module, "command")
    }
    assert written == {listed.partition(":")[0] for listed in commands.values()}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_contributing_names_every_place(places: tuple[str, ...]) -> None:
    assert [place for place in places if not (ROOT / place).exists()] == []
    guide = ROOT / "CONTRIBUTING.md"
    if not guide.exists():
        pytest.skip("CONTRIBUTING.md is not written yet")
    text = guide.read_text()
    assert [place for place in places if place not in text] == []
