"""A message names no flag that the command which shows it has not."""

import ast
import os
import re
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import consumers.cli
import consumers.errors
import producer.cli
import producer.errors
from producer.cli import flags_of
from schemas.advice import flags_in
from tests.support.forked_command import run_command
from tests.support.paths import ROOT

PROGRAMS = {"producer": producer.cli, "consumers": consumers.cli}
ONLY_OF: dict[str, tuple[str, ...]] = {
    "producer/foreign_files/rewardsql_models.py": ("sql sft", "sql reward-model"),
    "producer/foreign_files/agent_peft.py": ("run",),
    "producer/foreign_files/reading.py": ("run", "sql rl", "sql sft", "sql reward-model"),
    "producer/foreign_files/verl_trainer.py": ("sql rl",),
    "producer/foreign_files/verl_trainer_fields.py": ("sql rl",),
    "producer/fine_tuning/sql_demo.py": ("sql demo",),
    "producer/fine_tuning/pretrained_demo.py": ("sql demo",),
    "producer/fine_tuning/stages.py": ("sql demo",),
    "producer/pretrained/get.py": ("models get",),
    "producer/pretrained/index.py": ("models get",),
    "consumers/garbage/blobs.py": ("gc",),
    "consumers/garbage/references.py": ("gc",),
    "consumers/metrics/serve.py": ("run", "up"),
    "consumers/monitor/access.py": ("monitor", "up"),
    "consumers/monitor/start.py": ("monitor", "up"),
    "consumers/projection/operators.py": ("parked drop",),
    "consumers/rebuild/built.py": ("rebuild",),
    "consumers/rebuild/rebuild.py": ("rebuild",),
    "consumers/rebuild/side_schema.py": ("rebuild",),
    "consumers/rebuild/until.py": ("rebuild",),
    "consumers/tail/cursor.py": ("tail",),
    "consumers/tail/formats.py": ("tail",),
    "consumers/tail/offsets.py": ("tail",),
    "consumers/trackers/open.py": ("track",),
}
"""Modules below the commands that only these show messages of."""
OF_PIP = ("--only-binary=", "--retries=", "--dest=", "--requirement=", "--hash=sha256:")
OF_SMI = ("nvidia-smi", "--query-gpu", "--format=csv")
FOREIGN = ("vLLM", "SGLang", "kafka-configs.sh", "content query", *OF_SMI, *OF_PIP)
"""Of commands that are not ours."""
ONE_FLAG = re.compile(r"(X/)?--[a-zX-]+=?")
QUOTED = re.compile(r"`[a-z][^`]*`")
"""A command in a help text."""
LOGGING = {"--verbose", "--quiet", "--log-format"}
"""Every command has them."""
WAYS = ("ways", "OTHERWISE")
"""Names of what to do, from which the command line leaves out what a command cannot do."""


@cache
def contexts(side: str) -> dict[str, click.Context]:
    """Command -> its context within those of the groups that it is in."""
    group = PROGRAMS[side].cli
    found = {"": click.Context(group)}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        context = found[name]
        if isinstance(context.command, click.Group):
            for word in context.command.list_commands(context):
                child = context.command.get_command(context, word)
                assert child is not None
                found[f"{name} {word}".strip()] = click.Context(child, parent=context)
                waiting.append(f"{name} {word}".strip())
    return found


@pytest.mark.parametrize("side", PROGRAMS)
def test_an_option_that_is_required_is_asked_for(side: str) -> None:
    lacking = []
    for name, context in contexts(side).items():
        for option in context.command.params:
            if not (isinstance(option, click.Option) and option.required):
                continue
            lacking.append(name)
            with pytest.raises(click.MissingParameter):
                option.handle_parse_result(context, {}, [])
    assert lacking


def flags(side: str, command: str) -> set[str]:
    """Of a command and the groups that it is in; none: there is no such command."""
    context = contexts(side).get(command)
    return set() if context is None else flags_of(context)


def defined_in(side: str, modules: Container[str]) -> list[str]:
    """Commands whose work begins in these modules of the side's commands."""
    return [
        name
        for name, context in contexts(side).items()
        if (work := context.command.callback) is not None
        and work.__module__.rpartition(".")[2] in modules
    ]


def texts(path: Path) -> Iterator[tuple[str, bool]]:
    """The strings of a module apart from its documentation; whether each is one of the ways."""
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr | ast.Constant) or isinstance(
            parents[node], ast.Expr | ast.JoinedStr | ast.FormattedValue
        ):
            continue
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            continue
        around, is_way = parents.get(node), False
        while around is not None and not isinstance(around, ast.stmt | ast.keyword):
            around = parents.get(around)
        if isinstance(around, ast.keyword):
            is_way = around.arg in WAYS
        elif isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
            is_way = around.targets[0].id in WAYS
        text = _text(node)
        if not ONE_FLAG.fullmatch(text):  # a word of a call, not of a sentence
            yield (text, is_way)


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(
        str(value.value) if isinstance(value, ast.Constant) else "X" for value in node.values
    )


@pytest.mark.parametrize("side", PROGRAMS)
def test_below_the_commands_only_a_way_may_name_a_flag(side: str) -> None:
    problems = []
    for path in sorted((ROOT / side).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if "/commands/" in name or path.parent == ROOT / side:
            continue
        shown_by = [flags(side, item) for item in ONLY_OF.get(name, ())]
        problems += [
            f"{name}: {text!r}"
            for text, is_way in texts(path)
            if not is_way
            and not any(item in text for item in FOREIGN)
            and (named := flags_in(text))
            and not (shown_by and all(named <= known for known in shown_by))
        ]
    assert not problems, "\n".join(problems)


def test_a_message_gives_a_flag_only_a_value_that_it_takes() -> None:
    problems = [
        f"{name}: {flag} {value}"
        for name, commands in ONLY_OF.items()
        for text, _ in texts(ROOT / name)
        for flag, value in re.findall(r"(--[a-z-]+) ([a-z_]+)", text)
        for command in commands
        for param in contexts(name.partition("/")[0])[command].command.params
        if flag in param.opts
        and isinstance(param.type, click.Choice)
        and value not in param.type.choices
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("side", PROGRAMS)
def test_a_message_of_a_command_module_names_flags_of_the_commands_that_use_it(side: str) -> None:
    sources = {path.stem: path for path in (ROOT / side / "commands").glob("*.py")}
    imports = {
        name: set(re.findall(rf"from {side}\.commands\.(\w+) import", path.read_text()))
        for name, path in sources.items()
    }
    problems = []
    for name, path in sources.items():
        users = {name}
        while more := {one for one, used in imports.items() if used & users} - users:
            users |= more
        known = LOGGING.union(*(flags(side, item) for item in defined_in(side, users)))
        problems += [f"{name}: {text!r}" for text, _ in texts(path) if flags_in(text) - known]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("side", PROGRAMS)
def test_the_help_of_every_command_names_its_own_flags(side: str) -> None:
    problems = []
    for name, context in contexts(side).items():
        command = context.command
        helps = [
            command.help or "",
            *(getattr(param, "help", None) or "" for param in command.params),
        ]
        problems += [
            f"{name}: {text!r}"
            for text in helps
            if flags_in(QUOTED.sub("", text)) - flags_of(context)
        ]
    assert not problems, "\n".join(problems)


def test_the_same_error_advises_each_command_what_it_can_do(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "gone").symlink_to(tmp_path / "elsewhere")
    said = {}
    for command in ("run", "evaluate"):
        environ = {**os.environ, "CUA_HOME": str(tmp_path)}
        done = run_command("producer", command, "--training-name", "gone", environ=environ)
        assert done.returncode == 3
        said[command] = done.stderr.strip().rpartition("does not exist; ")[2]
    assert said == {
        "run": "mount or restore it, or name the folder that replaces it with --log-path",
        "evaluate": "mount or restore it",
    }


class OneCommand(consumers.cli.ProjectGroup):
    """`cua-project` with a command whose work fails."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx, cmd_name
        command = click.Command("fail", callback=self.fail)
        command.params += [*consumers.cli.cli.params[:3], click.Option(["--near"])]
        return command

    @staticmethod
    def fail(**_: object) -> None:
        ways = ("wait", "give --near", "give --far", "run `cua-project up --port 1`")
        message = "it failed"
        raise consumers.errors.UnreachableError(message, ways=ways)


def test_cua_project_leaves_out_what_a_command_has_not() -> None:
    group = OneCommand(name="cua-project")
    with pytest.raises(consumers.errors.UnreachableError) as raised:
        group.main(["fail"], standalone_mode=False)
    expected = "it failed; wait, give --near, or run `cua-project up --port 1`"
    assert str(raised.value) == expected


@pytest.mark.parametrize("base", [producer.errors.CuaTrainError, consumers.errors.CuaProjectError])
def test_ways_are_listed_and_none_is_no_list(base: type[Exception]) -> None:
    errors = [base("m"), base("m", ways=("a",)), base("m", ways=("a", "b"))]  # type: ignore[call-arg]  # both take ways
    assert [str(error) for error in errors] == ["m", "m; a", "m; a, or b"]
