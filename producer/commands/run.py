"""`cua-train run`, as one process or as several processes of torchrun."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.flags import PANELS, ShortHelpCommand, field_flags, with_config_file
from producer.commands.given_fields import given_fields
from producer.commands.options import examples, with_summary_as_json, with_takeover
from producer.commands.shell import continue_command, cua_project_command, print_result
from producer.commands.stopping import continued_by
from producer.errors import UsageError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.summary import Summary

EPILOG = examples(
    "$ cua-train run                                        # train the demo policy",
    "$ cua-train run --training-name first                  # train, or continue",
    "$ cua-train run --training-name first --num-steps 40   # more steps",
    "$ cua-train run --config run.toml --seed 1             # flags win",
    '$ cua-train run --tasks \'{"source_type": "demo_training", "limit": 8}\'',
)


_NUMBERS = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT")
"""Variables of torchrun that hold a number."""


@click.command(name="run", cls=ShortHelpCommand, epilog=EPILOG)
@field_flags(PANELS)
@with_takeover
@with_config_file
@click.option(
    "--monitor/--no-monitor",
    default=True,
    panel="Output",
    help="Also run `cua-project up`: tables and monitor. [default: yes]",
)
@with_summary_as_json
def command(
    *, config_file: Path | None, monitor: bool, takeover: bool, as_json: bool, **flags: Any
) -> None:
    """Train a policy, or continue the training of the same --training-name.

    Without flags it trains `demo`: a small policy on a simulated phone, in minutes on a CPU.
    """
    with _joined_ranks(os.environ) as is_first:
        if is_first:
            given = given_fields(flags, config_file)
            _train(given, monitor=monitor, takeover=takeover, as_json=as_json)


@contextmanager
def _joined_ranks(environ: Mapping[str, str]) -> Iterator[bool]:
    """Join torchrun's processes, if `environ` names several. Yields whether this process trains.

    On other ranks, the work is already done when the block begins.
    """
    if (environ.get("WORLD_SIZE") or "1") == "1":
        yield True
        return
    _check_torchrun(environ)
    from producer.policy.torch_policy import ranks
    from producer.policy.torch_policy.follow import follow

    ranks.join(int(environ["LOCAL_RANK"]))
    try:
        if is_first := environ["RANK"] == "0":
            yield is_first
        else:
            # Rank 0 decides when to stop and tells the other ranks.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            follow()
            yield is_first
    finally:
        ranks.leave()


def _check_torchrun(environ: Mapping[str, str]) -> None:
    """Raise UsageError if a variable that torchrun sets is missing or is no number."""
    advice = "start with torchrun, or unset WORLD_SIZE"
    if missing := [name for name in (*_NUMBERS, "MASTER_ADDR") if not environ.get(name)]:
        message = (
            f"WORLD_SIZE is {environ['WORLD_SIZE']}, but these variables are missing or empty:"
            f" {', '.join(missing)}; {advice}"
        )
        raise UsageError(message)
    for name in _NUMBERS:
        if not environ[name].isdecimal():
            message = f"{name} is {environ[name]!r}, not a whole number from 0; {advice}"
            raise UsageError(message)


def _train(given: dict[str, Any], *, monitor: bool, takeover: bool, as_json: bool) -> None:
    # Imported here to keep --help quick.
    from producer.commands.cua_project import CuaProject
    from producer.commands.existing import has_states, resolve_existing
    from producer.training.asked_config import read_asked
    from producer.training.loaded import load_run_tasks
    from producer.training.preflight import check_folders

    installation = read_installation(os.environ)
    config = read_asked(given, installation)
    check_folders(installation, config)
    if not has_states(config, installation):
        # The log already has the tasks of an existing training.
        load_run_tasks(config, is_check=True)
    config = resolve_existing(config, installation)
    from producer.training.run import run

    def command_of(name: str, folder: Path) -> str:
        return continue_command(
            name,
            log_path=None if config.run_folder is None else folder,
            monitor=monitor,
            baseline_only=config.baseline_only,
        )

    with ExitStack() as children, continued_by(command_of, database=monitor) as (stop, begun):

        def on_open(name: str, folder: Path) -> None:
            begun(name, folder)
            if monitor:
                cua_project = CuaProject(name)
                children.callback(cua_project.stop)
                cua_project.start()

        summary = run(
            config, installation=installation, stop=stop, on_open=on_open, takeover=takeover
        )
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary, monitor=monitor)


def _print_summary(summary: "Summary", *, monitor: bool) -> None:
    """Print the summary. If the `monitor` ran, the log has the command that reopens it."""
    from producer.training.summary import summary_lines

    look = [f"{cua_project_command('psql')}  # SQL"]
    if not monitor:
        look.insert(0, f"{cua_project_command('up')}  # tables and monitor")
    print_result(summary, summary_lines(summary), look, note="  # events")
    if summary.unshipped_events:
        click.echo(
            f"completed here; {summary.unshipped_events:,} events wait for Kafka; once it is back,"
            f" send them with: {cua_project_command('ship')}"
        )
