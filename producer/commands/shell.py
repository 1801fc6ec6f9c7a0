"""Commands that are printed for people; each works in a new shell, from any folder."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from schemas.installation import read_installation
from schemas.programs import ENV, program

if TYPE_CHECKING:
    from producer.fine_tuning.run import FineTuningSummary
    from producer.training.summary import Summary

DATABASE = ("POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD")
PUBLIC = re.compile(
    r"_(SERVERS|PROTOCOL|MECHANISM|FILE|CAFILE|CERTFILE|KEYFILE|CRLFILE|HOSTNAME|USERNAME|URL"
    r"|SCOPE|CLIENT_ID|SERVICE_NAME|VERSION)$"
)
"""Suffixes of KAFKA_* variables that may be printed; the others may hold secrets."""


def continue_command(
    training_name: str,
    *,
    log_path: Path | None = None,
    monitor: bool = True,
    baseline_only: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The `cua-train run` command that continues a training. Other settings are in the log."""
    words = ["run", "--training-name", training_name]
    if log_path is not None:
        words += ["--log-path", str(log_path.expanduser().absolute())]
    if baseline_only:
        words.append("--baseline-only")
    if not monitor:
        words.append("--no-monitor")
    return cua_train_command(*words, database=monitor, environ=environ)


def cua_train_command(
    *words: str, database: bool = False, environ: Mapping[str, str] = os.environ
) -> str:
    """A `cua-train` command for this installation, with the database's address if `database`."""
    return _command(_variables(environ, database=database), "cua-train", words)


def cua_project_command(*words: str, environ: Mapping[str, str] = os.environ) -> str:
    """A `cua-project` command for this installation."""
    return _command(_variables(environ, database=True), "cua-project", words)


def print_result(
    result: "Summary | FineTuningSummary",
    lines: Iterable[str],
    look: Iterable[str] = (),
    *,
    note: str = "",
) -> None:
    """Print a training's result, `lines`, and commands for inspecting it.

    The commands are `look`, followed by the one that prints the training's events.
    """
    name = result.training_name
    events = cua_project_command("tail", "--training", name, "-n", "20")
    header = f"training {name}: {result.status} after step {result.steps}, {result.seconds:.0f} s"
    commands = [f"  {command}" for command in (*look, f"{events}{note}")]
    click.echo("\n".join([header, *lines, "look at it:", *commands]))


def withheld(environ: Mapping[str, str] = os.environ, *, database: bool = True) -> list[str]:
    """Names of variables that a printed command needs but that may hold secrets."""
    variables = _variables(environ, database=database)
    return [name for name, value in variables if value is None]


def _command(variables: Iterator[tuple[str, str | None]], name: str, words: Iterable[str]) -> str:
    given = [f"{key}={shlex.quote(value)}" for key, value in variables if value is not None]
    return " ".join([*([ENV] if given else []), *given, program(name), shlex.join(words)])


def _variables(environ: Mapping[str, str], *, database: bool) -> Iterator[tuple[str, str | None]]:
    """Yield (name, value) of this installation's variables; None for a possible secret."""
    if environ.get("CUA_HOME") or environ.get("XDG_DATA_HOME"):
        yield "CUA_HOME", str(read_installation(environ).home)
    if environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        for name in sorted(name for name in environ if name.startswith("KAFKA_")):
            if environ[name]:
                yield name, _public_kafka_value(name, environ[name])
    if value := environ.get("CUA_TOPIC_PREFIX"):
        yield "CUA_TOPIC_PREFIX", value
    if value := environ.get("CUA_BLOBS"):
        yield "CUA_BLOBS", _public_blobs_url(value)
    if environ.get("CUA_DBBENCH_PASSWORD"):
        yield "CUA_DBBENCH_PASSWORD", None
    if database:
        yield from _database_variables(environ)


def _database_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    if url := environ.get("DATABASE_URL"):
        has_password = "password=" in url or ":" in urlsplit(url).netloc.rpartition("@")[0]
        yield "DATABASE_URL", None if has_password else url
        return
    for name in DATABASE:
        if environ.get(name):
            yield name, None if name == "POSTGRES_PASSWORD" else environ[name]


def _public_kafka_value(name: str, value: str) -> str | None:
    ending = PUBLIC.search(name)
    if ending is None:
        return None
    return str(Path(value).expanduser().absolute()) if name.endswith("FILE") else value


def _public_blobs_url(url: str) -> str | None:
    if "://" in url:
        return None if "@" in urlsplit(url).netloc else url
    return str(Path(url).expanduser().absolute())
